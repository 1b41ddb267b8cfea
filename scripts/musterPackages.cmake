# The packages that muster is made of, as targets: the build reads this file, and so does
# who links the static library from where it was installed.
find_package(PkgConfig ${muster_required})
find_package(Threads ${muster_required})
find_package(nng CONFIG ${muster_required}) # Debian 12 has no module of pkg-config
if(PkgConfig_FOUND)
    pkg_check_modules(UV ${muster_required} IMPORTED_TARGET libuv)
    pkg_check_modules(CARES ${muster_required} IMPORTED_TARGET libcares)
    pkg_check_modules(SSL ${muster_required} IMPORTED_TARGET libssl>=3 libcrypto>=3)
    pkg_check_modules(CJSON ${muster_required} IMPORTED_TARGET libcjson)
    pkg_search_module(MSGPACK ${muster_required} msgpack-c msgpack)
endif()

# msgpack-c changed the names of its module, library and CMake target from 4 to 6, and
# the module of 6.0 names its folders relative to nothing ("includedir=include").
# pkg-config says where its prefix is; the header and the library are looked for there.
if(MSGPACK_FOUND AND NOT TARGET muster::msgpack)
    find_path(MUSTER_MSGPACK_INCLUDE_DIR msgpack.h
              HINTS ${MSGPACK_PREFIX}/include ${MSGPACK_INCLUDEDIR})
    find_library(MUSTER_MSGPACK_LIBRARY NAMES msgpack-c msgpackc
                 HINTS ${MSGPACK_PREFIX}/lib ${MSGPACK_LIBDIR})
    mark_as_advanced(MUSTER_MSGPACK_INCLUDE_DIR MUSTER_MSGPACK_LIBRARY)
    if(MUSTER_MSGPACK_INCLUDE_DIR AND MUSTER_MSGPACK_LIBRARY)
        add_library(muster::msgpack UNKNOWN IMPORTED)
        set_target_properties(muster::msgpack PROPERTIES
            IMPORTED_LOCATION ${MUSTER_MSGPACK_LIBRARY}
            INTERFACE_INCLUDE_DIRECTORIES ${MUSTER_MSGPACK_INCLUDE_DIR})
    elseif(muster_required)
        message(FATAL_ERROR "pkg-config knows ${MSGPACK_MODULE_NAME} "
                            "${MSGPACK_VERSION}, but msgpack.h or its library was found "
                            "neither in ${MSGPACK_PREFIX} nor where CMake looks")
    endif()
endif()

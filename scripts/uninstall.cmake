# Remove what the last `cmake --install` has installed, and folders of its own that are
# empty then: cmake -D MANIFEST=BUILD/install_manifest.txt -P scripts/uninstall.cmake
if(NOT EXISTS "${MANIFEST}")
    message(FATAL_ERROR "nothing was installed from here: there is no ${MANIFEST}")
endif()
file(STRINGS "${MANIFEST}" files)
set(folders "")
foreach(file IN LISTS files)
    set(file "$ENV{DESTDIR}${file}")
    file(REMOVE "${file}")
    cmake_path(GET file PARENT_PATH folder)
    while(folder MATCHES "/muster(/|$)")
        list(APPEND folders "${folder}")
        cmake_path(GET folder PARENT_PATH folder)
    endwhile()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING)     # what is inside comes first
foreach(folder IN LISTS folders)
    execute_process(COMMAND rmdir ${folder} ERROR_QUIET)    # not where others have files
endforeach()
list(LENGTH files count)
message(STATUS "removed ${count} files")

# How what is installed is compiled and linked, in every kind of build but Debug and those
# with sanitizers: stack protector, checked calls of the C library, nothing that may be
# written once the loader is done; and no name of the folder that it was built in, so that
# two folders make the same files. Debuggers that are started in the tree find its files.
# Checked calls bring warnings for what is ignored by (void), on purpose: not these.
get_filename_component(muster_source_dir ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)
foreach(option IN ITEMS -fstack-protector-strong -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2
                        -Wno-unused-result
                        -ffile-prefix-map=${muster_source_dir}=.
                        -ffile-prefix-map=${CMAKE_BINARY_DIR}=build)
    add_compile_options($<$<NOT:$<CONFIG:Debug>>:${option}>)
endforeach()
add_link_options($<$<NOT:$<CONFIG:Debug>>:-Wl,-z,relro,-z,now>)

// SPDX-License-Identifier: BSL-1.0
// Loads and runs a plugin. It isn't linked with redlock.
#include <cstdio>

#include <dlfcn.h>

int main(int, char** arguments)
{
    void* const plugin = dlopen(arguments[1], RTLD_NOW);
    auto* const run = plugin != nullptr ? reinterpret_cast<void (*)()>(dlsym(plugin, "run_plugin")) : nullptr;
    if (run == nullptr)
    {
        std::fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    run();
    return 0;
}

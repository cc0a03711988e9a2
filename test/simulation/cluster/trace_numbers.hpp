// SPDX-License-Identifier: BSL-1.0
// The numbers by which events enter the hash of a trace. Names and messages don't enter it, so they may be rewritten
// without changing the hash of a seed. A number is never changed and never reused; a new entry takes the next free one.
#pragma once

#include <cstdint>
#include <string_view>

namespace redlock::test
{

/// An operation of a client process, or something that happens to the process.
enum class action : std::uint8_t
{
    try_acquire = 1,
    acquire = 2,
    acquire_kept = 3,
    with_lock = 4,
    extend = 5,
    release = 6,
    wait_lost = 7,
    inspect = 8,
    examine = 9,
    shutdown = 10,
    wrong_request = 11,
    lease_won = 12,
    lease_given_up = 13,
    lease_dropped = 14,
    killed = 15,
    killed_and_reset = 16,
    manager_dropped = 17,
    notified = 18,
    own_resource_acquired = 19,
    probed = 20
};

enum class action_phase : std::uint8_t
{
    whole = 0, // An action without a duration.
    begun = 1,
    ended = 2
};

enum class fault_number : std::uint8_t
{
    delay = 1,
    reorder = 2,
    split = 3,
    cut_there = 4,
    cut_back = 5,
    partition = 6,
    hold = 7,
    flapping = 8,
    cut_short = 9,
    hold_replies = 10,
    reset = 11,
    reset_all = 12,
    sever = 13,
    half_close = 14,
    half_open = 15,
    full = 16,
    refused = 17,
    silent = 18,
    crowded = 19,
    master_pause = 20,
    restart = 21,
    master_killed = 22,
    empty_after_max_ttl = 23,
    oom = 24,
    readonly = 25,
    loading = 26,
    busy = 27,
    noreplicas = 28,
    odd_error = 29,
    no_scripts = 30,
    forbidden = 31,
    odd_error_to_the_end = 32,
    busy_to_the_end = 33,
    another_type = 34,
    script_flush = 35,
    noperm = 36,
    garbled = 37,
    master_drift = 38,
    restart_empty = 39,
    restart_stale = 40,
    flushall = 41,
    promote = 42,
    demote_and_promote = 43,
    evict = 44,
    clock_ahead = 45,
    clock_back = 46,
    wild_drift = 47,
    client_pause = 48,
    pause_at_grant = 49,
    client_sleep = 50,
    client_killed = 51,
    client_killed_and_reset = 52,
    new_client = 53,
    cancellation = 54,
    shutdown = 55,
    manager_dropped = 56,
    same_server = 57,
    client_drift = 58,
    all_mended = 59, // No fault, but their end.
    push = 60,
    slow_disk = 61,
    busy_caller = 62,
    power_cut = 63,
    majority_empty = 64,
    older_copies = 65,
    forgets_again = 66,
    swapdb = 67,
    swapdb_twice = 68,
    first_replica = 69,
    raise_refused = 70,
    eviction_policy = 71,
    cut_off = 72,
    machine_stopped = 73,
    group_changed = 74,
    handshake_garbled = 75,
    put_back = 76,
    marker_deleted = 77,
    killed_at_arming = 78,
    backups = 79,
    wrong_hints = 80,
    mistyped_name = 81
};

/// Returns the name of an action for printed traces and for messages.
std::string_view name_of(action what) noexcept;

} // namespace redlock::test

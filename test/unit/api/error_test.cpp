// SPDX-License-Identifier: BSL-1.0
// The two error categories.
#include <redlock/error.hpp>

#include <boost/asio/error.hpp>
#include <boost/system/errc.hpp>
#include <catch2/catch_test_macros.hpp>

#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <system_error>

namespace redlock::test
{

namespace
{

constexpr int first_errc = static_cast<int>(errc::held_by_other);
constexpr int last_errc = static_cast<int>(errc::provisioning_failed);
constexpr int first_master_errc = static_cast<int>(master_errc::not_connected);
constexpr int last_master_errc = static_cast<int>(master_errc::no_database);

namespace generic = boost::system::errc;

/// Checks for a sentence that says what happened, a colon, and what to do.
void check_sentence(const std::string& text)
{
    INFO(text);
    const std::size_t colon = text.find(": ");
    REQUIRE(colon != std::string::npos);
    CHECK(colon >= 10);
    CHECK(text.size() - colon >= 12);
    CHECK(std::islower(static_cast<unsigned char>(text.front())) != 0);
    CHECK(std::isalnum(static_cast<unsigned char>(text.back())) + (text.back() == ']') != 0);
    CHECK(text.find("isn't known") == std::string::npos);
}

void check_all_sentences(const boost::system::error_category& category, int first, int last)
{
    std::set<std::string> different;
    for (int value = first; value <= last; ++value)
    {
        CAPTURE(value);
        const std::string text = category.message(value);
        check_sentence(text);
        different.insert(text);
    }
    CHECK(different.size() == static_cast<std::size_t>(last - first + 1));
}

} // namespace

TEST_CASE("every error of an operation says what happened and what to do")
{
    check_all_sentences(error_category(), first_errc, last_errc);
}

TEST_CASE("every error of a master says what happened and what to do")
{
    check_all_sentences(master_category(), first_master_errc, last_master_errc);
}

TEST_CASE("values unknown to the categories have a message, too")
{
    for (const int value : {0, -1, last_errc + 1, 1'000'000})
    {
        const std::string expected = "error " + std::to_string(value) + " of redlock isn't known: ";
        CHECK(error_category().message(value).starts_with(expected));
    }
    for (const int value : {0, -1, last_master_errc + 1, 1'000'000})
    {
        const std::string expected = "error " + std::to_string(value) + " of redlock.master isn't known: ";
        CHECK(master_category().message(value).starts_with(expected));
    }
}

TEST_CASE("the enumerators convert to error codes of their category")
{
    const error_code operation = errc::no_quorum;
    const error_code of_master = master_errc::timed_out;
    CHECK(operation.category() == error_category());
    CHECK(of_master.category() == master_category());
    CHECK(std::string{error_category().name()} == "redlock");
    CHECK(std::string{master_category().name()} == "redlock.master");
    CHECK(operation.failed());
    CHECK(operation == errc::no_quorum);
    CHECK(operation != errc::held_by_other);
    // The same number in two categories.
    CHECK(error_code{errc::no_quorum}.value() == error_code{master_errc::timed_out}.value());
    CHECK(operation != of_master);
}

TEST_CASE("errors compare equal to the system's conditions where one exists")
{
    for (const master_errc slow :
         {master_errc::timed_out, master_errc::unresponsive, master_errc::connect_timed_out})
    {
        CHECK(error_code{slow} == generic::timed_out);
    }
    CHECK(error_code{master_errc::not_connected} == generic::not_connected);
    CHECK(error_code{master_errc::connection_lost} == generic::connection_reset);
    CHECK(error_code{master_errc::protocol_error} == generic::protocol_error);
    CHECK(error_code{master_errc::authentication_failed} == generic::permission_denied);
    CHECK(error_code{master_errc::no_permission} == generic::permission_denied);
    CHECK(error_code{master_errc::loading} == generic::resource_unavailable_try_again);
    CHECK(error_code{master_errc::busy} == generic::resource_unavailable_try_again);
    CHECK(error_code{master_errc::too_many_outstanding_keys} == generic::resource_unavailable_try_again);
    CHECK(error_code{master_errc::same_server} != generic::resource_unavailable_try_again);
    constexpr int last_invalid = static_cast<int>(errc::invalid_config);
    for (int value = static_cast<int>(errc::invalid_resource); value <= last_invalid; ++value)
    {
        CHECK(error_code{static_cast<errc>(value)} == generic::invalid_argument);
    }
    CHECK(error_code{errc::provisioning_failed} != generic::invalid_argument);
    for (int value = first_errc; value < static_cast<int>(errc::invalid_resource); ++value)
    {
        CHECK(error_code{static_cast<errc>(value)} != generic::invalid_argument);
        CHECK(error_code{static_cast<errc>(value)} != generic::timed_out);
    }
}

TEST_CASE("every error has its own name, and an unknown value has none", "[errors]")
{
    std::set<std::string_view> different;
    const auto check = [&](std::string_view name)
    {
        CAPTURE(name);
        CHECK(name != "unknown");
        CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string_view::npos);
        CHECK(different.insert(name).second);
    };
    for (int value = first_errc; value <= last_errc; ++value)
    {
        check(to_string(static_cast<errc>(value)));
        CHECK(error_name(static_cast<errc>(value)) == to_string(static_cast<errc>(value)));
    }
    for (int value = first_master_errc; value <= last_master_errc; ++value)
    {
        check(to_string(static_cast<master_errc>(value)));
        CHECK(error_name(static_cast<master_errc>(value)) == to_string(static_cast<master_errc>(value)));
    }
    for (const int value : {0, -1, 1'000'000})
    {
        CHECK(to_string(static_cast<errc>(value)) == "unknown");
        CHECK(to_string(static_cast<master_errc>(value)) == "unknown");
        CHECK(to_string(static_cast<condition>(value)) == "unknown");
    }
    CHECK(to_string(static_cast<errc>(last_errc + 1)) == "unknown");
    CHECK(to_string(static_cast<master_errc>(last_master_errc + 1)) == "unknown");
    CHECK(to_string(errc::held_by_other) == "held_by_other");
    CHECK(to_string(master_errc::out_of_memory) == "out_of_memory");
    CHECK(error_name({}) == "success");
    CHECK(error_name(boost::asio::error::operation_aborted) == "operation_aborted");
    CHECK(error_name(boost::asio::error::connection_refused) == "other");
}

namespace
{

constexpr std::array all_conditions{
    condition::contended, condition::unavailable, condition::lost, condition::misuse, condition::retryable};

/// Returns the names of the conditions that an error is equivalent to.
std::string conditions_of(const error_code& error)
{
    std::string names;
    for (const condition each : all_conditions)
    {
        if (error == each)
        {
            names += (names.empty() ? "" : " ") + std::string{to_string(each)};
        }
        // The same with the standard library's types, which have their own category for the system's errors.
        const std::error_code standard = error;
        CHECK(
            (error.category() == boost::system::system_category() || (standard == each) == (error == each)));
    }
    return names;
}

} // namespace

TEST_CASE("every error maps to the conditions that callers decide by", "[errors]")
{
    const std::map<errc, std::string> expected{
        {errc::held_by_other, "contended retryable"},
        {errc::no_quorum, "unavailable retryable"},
        {errc::validity_exhausted, "unavailable retryable"},
        {errc::lease_lost, "lost"},
        {errc::hold_limit_reached, "lost"},
        {errc::not_held, "misuse"},
        {errc::unconfirmed, "unavailable"},
        {errc::too_many_operations, "retryable"},
        {errc::closed, ""},
        {errc::provisioning_failed, "retryable"}};
    for (int value = first_errc; value <= last_errc; ++value)
    {
        const auto one = static_cast<errc>(value);
        CAPTURE(to_string(one));
        const auto found = expected.find(one);
        CHECK(conditions_of(one) == (found != expected.end() ? found->second : "misuse"));
    }
    const std::set<master_errc> settings{
        master_errc::certificate_untrusted,
        master_errc::certificate_expired,
        master_errc::certificate_wrong_name,
        master_errc::protocol_error,
        master_errc::authentication_failed,
        master_errc::no_permission,
        master_errc::cluster_node,
        master_errc::same_server,
        master_errc::other_group,
        master_errc::not_a_member,
        master_errc::no_database};
    for (int value = first_master_errc; value <= last_master_errc; ++value)
    {
        const auto one = static_cast<master_errc>(value);
        CAPTURE(to_string(one));
        CHECK(conditions_of(one) == (settings.contains(one) ? "misuse" : "unavailable retryable"));
    }
    for (const error_code& each :
         {error_code{boost::asio::error::connection_refused},
          error_code{boost::asio::error::host_unreachable}, error_code{boost::asio::error::timed_out},
          error_code{boost::asio::error::connection_reset}, error_code{boost::asio::error::host_not_found},
          error_code{boost::asio::error::eof}})
    {
        CAPTURE(each.message());
        CHECK(conditions_of(each) == "unavailable retryable");
    }
    CHECK(conditions_of({}).empty());
    CHECK(conditions_of(boost::asio::error::operation_aborted).empty());
    CHECK(conditions_of(static_cast<errc>(last_errc + 1)).empty());
    CHECK_FALSE(error_code{errc::no_quorum} == static_cast<condition>(99));
    CHECK(make_error_condition(condition::lost).message() == "lost");
    CHECK(std::string{condition_category().name()} == "redlock.condition");
}

TEST_CASE("the errors compare equal to codes of the standard library, too", "[errors]")
{
    const error_code own = errc::held_by_other;
    const std::error_code standard = own;
    CHECK(standard == errc::held_by_other);
    CHECK(standard != errc::no_quorum);
    CHECK(standard != master_errc::not_connected);
    CHECK(std::error_code{master_errc::busy} == master_errc::busy);
    CHECK(std::error_code{errc::invalid_ttl} == std::errc::invalid_argument);
    CHECK(standard.message() == own.message());
    CHECK(own == errc::held_by_other);
    const std::error_code made = errc::closed;
    CHECK(made == errc::closed);
}

TEST_CASE("a lock_error is a system_error that names the resource and the report", "[errors]")
{
    const lock_error plain{errc::no_quorum};
    CHECK(std::string{plain.what()} == error_code{errc::no_quorum}.message());
    CHECK(plain.resource().empty());
    const lock_error detailed{errc::held_by_other, "orders\n42", "acquire: held"};
    try
    {
        throw detailed;
    }
    catch (const system_error& caught)
    {
        CHECK(caught.code() == errc::held_by_other);
        CHECK(std::string{caught.what()} == "orders\\n42: acquire: held");
        CHECK(dynamic_cast<const lock_error&>(caught).resource() == "orders\n42");
    }
    STATIC_REQUIRE(std::is_nothrow_copy_constructible_v<lock_error>);
}

} // namespace redlock::test

// SPDX-License-Identifier: BSL-1.0
// Tests of the two error categories.
#include <redlock/error.hpp>

#include <boost/system/errc.hpp>
#include <catch2/catch_test_macros.hpp>

#include <cctype>
#include <set>
#include <string>

namespace redlock::test
{

namespace
{

constexpr int first_errc = static_cast<int>(errc::held_by_other);
constexpr int last_errc = static_cast<int>(errc::invalid_config);
constexpr int first_master_errc = static_cast<int>(master_errc::not_connected);
constexpr int last_master_errc = static_cast<int>(master_errc::command_failed);

namespace generic = boost::system::errc;

/// A sentence that says what happened, a colon, and what to do.
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

TEST_CASE("values that the categories don't know have a message too")
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

TEST_CASE("the enumerators are error codes of their own category")
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
    // The same number, but of two categories.
    CHECK(error_code{errc::no_quorum}.value() == error_code{master_errc::timed_out}.value());
    CHECK(operation != of_master);
}

TEST_CASE("errors can be compared with the system's conditions where there is one")
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
    CHECK(error_code{master_errc::too_many_owed} == generic::resource_unavailable_try_again);
    CHECK(error_code{master_errc::same_server} != generic::resource_unavailable_try_again);
    for (int value = static_cast<int>(errc::invalid_resource); value <= last_errc; ++value)
    {
        CHECK(error_code{static_cast<errc>(value)} == generic::invalid_argument);
    }
    for (int value = first_errc; value < static_cast<int>(errc::invalid_resource); ++value)
    {
        CHECK(error_code{static_cast<errc>(value)} != generic::invalid_argument);
        CHECK(error_code{static_cast<errc>(value)} != generic::timed_out);
    }
}

} // namespace redlock::test

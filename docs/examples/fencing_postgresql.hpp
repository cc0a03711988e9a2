// SPDX-License-Identifier: BSL-1.0
// The account as a row in PostgreSQL, by psql, which finds its server in the variables PGHOST, PGUSER and PGDATABASE.
// Part of fencing.cpp.
#pragma once

#include "fenced_account.hpp"

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

/// Runs statements in one session. `:token` and `:balance` stand for the values; a client of libpq would use $1 and $2.
inline command_result run_sql(const std::string& statements, std::uint64_t token, std::int64_t balance = 0)
{
    return run_command(
        "psql -X -q -A -t -v ON_ERROR_STOP=1 -v VERBOSITY=sqlstate -v token=" + std::to_string(token) +
        " -v balance=" + std::to_string(balance) + " <<'END_OF_SQL'\n" + statements + "\nEND_OF_SQL");
}

/// Returns the output of statements that have succeeded. Empty if the function raise_fence has refused the token.
inline std::optional<std::string>
output_of_sql(const std::string& statements, std::uint64_t token, std::int64_t balance = 0)
{
    const command_result result = run_sql(statements, token, balance);
    if (result.output.find("ERROR:  40001") != std::string::npos)
    {
        return {};
    }
    if (result.code != 0)
    {
        throw std::runtime_error{"psql: " + result.output};
    }
    return result.output;
}

/// The row has a column for the token.
class fenced_row final : public fenced_account
{
  public:
    explicit fenced_row(rules obeyed) : obeyed_{obeyed} {}

    std::optional<std::int64_t> open(std::uint64_t token) override
    {
        const auto* const statement = obeyed_ == rules::both ? R"(
            UPDATE account SET fence = :token WHERE id = 42 AND fence <= :token RETURNING balance;
        )"
                                                             : R"(
            SELECT balance FROM account WHERE id = 42;
        )";
        const std::string rows = output_of_sql(statement, token).value_or("");
        return rows.empty() ? std::optional<std::int64_t>{} : std::stoll(rows);
    }

    bool write(std::uint64_t token, std::int64_t balance) override
    {
        const std::string statement = obeyed_ != rules::unchecked ? R"(
            UPDATE account SET balance = :balance, fence = :token WHERE id = 42 AND fence <= :token;
        )"
                                                                  : R"(
            UPDATE account SET balance = :balance WHERE id = 42;
        )";
        // The number of rows that were changed. In libpq: PQcmdTuples.
        return output_of_sql(statement + "\\echo :ROW_COUNT", token, balance).value_or("") == "1\n";
    }

  private:
    rules obeyed_;
};

/// The token is in a separate table. Each transaction begins with its check.
class fenced_transactions final : public fenced_account
{
  public:
    std::optional<std::int64_t> open(std::uint64_t token) override
    {
        const auto rows = output_of_sql(
            R"(
            BEGIN;
            SELECT raise_fence('account:42', :token);
            SELECT balance FROM account WHERE id = 42;
            COMMIT;
        )",
            token);
        // The first line is the empty result of the function.
        return rows ? std::stoll(*rows) : std::optional<std::int64_t>{};
    }

    bool write(std::uint64_t token, std::int64_t balance) override
    {
        return output_of_sql(
                   R"(
            BEGIN;
            SELECT raise_fence('account:42', :token);
            UPDATE account SET balance = :balance WHERE id = 42;
            COMMIT;
        )",
                   token, balance)
            .has_value();
    }
};

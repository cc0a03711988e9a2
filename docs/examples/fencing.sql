-- SPDX-License-Identifier: BSL-1.0
-- The tables of docs/examples/fencing.cpp, and a function that checks the token of many rows at once.
CREATE TABLE account (id bigint PRIMARY KEY, balance bigint NOT NULL, fence bigint NOT NULL DEFAULT 0);

CREATE TABLE fence (resource text PRIMARY KEY, token bigint NOT NULL);

CREATE FUNCTION raise_fence(of_resource text, to_token bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO fence AS shown VALUES (of_resource, to_token)
        ON CONFLICT (resource) DO UPDATE SET token = excluded.token WHERE shown.token <= excluded.token;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a later holder of % has shown its token', of_resource USING ERRCODE = '40001';
    END IF;
END $$;

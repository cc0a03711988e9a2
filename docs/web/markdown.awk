# SPDX-License-Identifier: BSL-1.0
# Functions for reading the Markdown pages of this tree: fenced code, link targets, the anchors of headings.

# True for a line of fenced code and for the fences themselves. Call it once for each line, with FNR == 1 at the start.
function in_code(line,    fence)
{
    if (FNR == 1) code_fence = ""
    if (match(line, /^ *(```+|~~~+)/)) {
        fence = substr(line, RSTART, RLENGTH)
        sub(/^ */, "", fence)
        if (code_fence == "") code_fence = fence
        else if (index(line, code_fence)) code_fence = ""
        return 1
    }
    return code_fence != ""
}

# Returns the path of a target relative to the page that links to it, without "." and ".."; "" above the top.
function resolve(page, target,    count, parts, i, kept, path)
{
    if (!sub(/\/[^\/]*$/, "", page)) page = "."
    count = split(page "/" target, parts, "/")
    for (i = 1; i <= count; i++) {
        if (parts[i] == "" || parts[i] == ".") continue
        if (parts[i] == "..") {
            if (kept-- == 0) return ""
        } else {
            parts[++kept] = parts[i]
        }
    }
    path = kept == 0 ? "." : parts[1]
    for (i = 2; i <= kept; i++) path = path "/" parts[i]
    return path
}

# Returns the anchor of a heading: lower case, without punctuation, with hyphens for spaces.
function anchor_of(heading)
{
    sub(/^#+[ \t]+/, "", heading)
    gsub(/\]\([^)]*\)/, "", heading)
    heading = tolower(heading)
    gsub(/[^a-z0-9_ \200-\377-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}

# Splits a line at its links: found[1..n] are the targets, text[0..n] what stands around them, so that
# text[0] found[1] text[1] ... is the line. Returns n. Code spans and addresses elsewhere are no targets.
function links_in(line, found, text,    n, rest)
{
    n = 0
    rest = line
    text[0] = ""
    while (match(rest, /`[^`]*`|\]\([^() \t]+/)) {
        if (substr(rest, RSTART, 1) == "`") {
            text[n] = text[n] substr(rest, 1, RSTART + RLENGTH - 1)
        } else {
            text[n] = text[n] substr(rest, 1, RSTART + 1)
            found[++n] = substr(rest, RSTART + 2, RLENGTH - 2)
            text[n] = ""
        }
        rest = substr(rest, RSTART + RLENGTH)
    }
    text[n] = text[n] rest
    return n
}

function is_elsewhere(target)
{
    return target ~ /^[a-z]+:/
}

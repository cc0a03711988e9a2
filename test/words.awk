# SPDX-License-Identifier: BSL-1.0
# Counts marker words in prose, after docs/web/markdown.awk: Markdown, the text of a man page, C++ comments, and lines of
# comment in all other files. -v markers='one|two words|three words|...'; code is skipped. Prints "markers words", then
# "count file:line: text" for each line with a marker.

BEGIN {
    count = split(markers, list, "|")
    for (i = 1; i <= count; i++) is_marker[list[i]] = 1
}

# Returns the prose of a line, "" if it has none.
function prose_of(line)
{
    if (FILENAME ~ /\.md$/) return line
    if (FILENAME ~ /\.1$/) {
        sub(/^\.[^ ]*/, "", line)
        return line
    }
    if (FILENAME !~ /\.[ch]pp$/) return sub(/^[ \t]*#/, "", line) ? line : ""
    # The first // that isn't part of a literal.
    while (match(line, /"([^"\\]|\\.)*"|'([^'\\]|\\.)'|\/\/+/)) {
        found = substr(line, RSTART, 2)
        line = substr(line, RSTART + RLENGTH)
        if (found == "//") return line
    }
    return ""
}

{
    prose = prose_of($0)
    # A phrase may continue on the next line, but not after an empty one.
    if (FNR == 1 || prose == "") before = before_that = ""
    if (in_code(prose)) next
    gsub(/`[^`]*`/, " ` ", prose)
    gsub(/\]\([^)]*\)/, " ", prose)
    found = 0
    count = split(tolower(prose), list, /[^a-z0-9_'`]+/)
    for (i = 1; i <= count; i++) {
        word = list[i]
        sub(/'.*$/, "", word)
        if (word == "") continue
        words++
        found += (word in is_marker) + ((before " " word) in is_marker) + ((before_that " " before " " word) in is_marker)
        before_that = before
        before = word
    }
    total += found
    if (found) lines = lines found " " FILENAME ":" FNR ": " $0 "\n"
}

END { printf "%d %d\n%s", total, words, lines }

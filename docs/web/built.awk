# SPDX-License-Identifier: BSL-1.0
# Reads the pages of the built site, after docs/web/markdown.awk, and prints "path page target" for each link within
# it: path is the file that it leads to, or "-" if that is outside of the site or has no such anchor.

# Takes the values of an attribute out of a line, into values[1..n].
function values_of(line, attribute, values,    n, value)
{
    while (match(line, "[ \t]" attribute "=(\"[^\"]*\"|[^\" \t>]+)")) {
        value = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        sub(/^[^=]*="?/, "", value)
        sub(/"$/, "", value)
        gsub(/&amp;/, "\\&", value)
        values[++n] = value
    }
    return n + 0
}

function note(target,    path, anchor, key)
{
    if (is_elsewhere(target) || target ~ /^\/\// || target ~ /^(data|javascript):/ || target == "") return
    path = anchor = target
    sub(/[#?].*$/, "", path)
    path = path == "" ? FILENAME : resolve(FILENAME, path)
    key = FILENAME " " target
    wanted[key] = path == "" ? "-" : path
    # The anchors "#" and "#__..." are the theme's.
    if (sub(/^[^#]*#/, "", anchor) && anchor != "" && anchor !~ /^__/) needed[key] = path "#" anchor
}

/ (id|name)=/ {
    for (i = values_of($0, "id", found); i > 0; i--) anchors[FILENAME "#" found[i]] = 1
    for (i = values_of($0, "name", found); i > 0; i--) anchors[FILENAME "#" found[i]] = 1
}

/ (href|src)=/ {
    for (i = values_of($0, "href", found); i > 0; i--) note(found[i])
    for (i = values_of($0, "src", found); i > 0; i--) note(found[i])
}

END {
    for (key in wanted)
        print (key in needed) && !(needed[key] in anchors) ? "-" : wanted[key], key
}

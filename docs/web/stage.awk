# SPDX-License-Identifier: BSL-1.0
# Reads the pages of this tree, after docs/web/markdown.awk, and writes them as the site generator wants them, below
# `out`: links lead to pages of the site, Mermaid blocks become pictures, lists are indented by four. What pages link
# to in this tree that is no page is printed, one path in a line: it becomes a page of its own below source/.

# Returns where a path of the tree is on the site.
function site_path(path)
{
    if (path == "README.md") return "index.md"
    if (path == ".github/CONTRIBUTING.md") return "contributing.md"
    if (path ~ /^docs\/.*\.(md|svg|png)$/) return substr(path, 6)
    if (!(path in extra)) {
        extra[path] = 1
        print path
    }
    return "source/" path ".md"
}

# Returns the way from one page of the site to another.
function way(from, to,    up)
{
    gsub(/[^\/]+\//, "../", from)
    sub(/[^\/]*$/, "", from)
    return from to
}

function rewritten(target,    anchor)
{
    if (is_elsewhere(target) || target ~ /^#/) return target
    anchor = ""
    if (match(target, /#.*/)) {
        anchor = substr(target, RSTART)
        target = substr(target, 1, RSTART - 1)
    }
    return way(site_page, site_path(resolve(FILENAME, target))) anchor
}

function rewrite(line,    n, i, result)
{
    n = links_in(line, target, text)
    result = text[0]
    for (i = 1; i <= n; i++) result = result rewritten(target[i]) text[i]
    return result
}

# Python-Markdown nests by four columns, where others take the width of the marker.
function indented(line,    spaces)
{
    if (line ~ /^([-*]|[0-9]+\.)[ \t]/) {
        # It doesn't begin a list in the middle of a paragraph either.
        if (!in_list && last != "") line = "\n" line
        in_list = 1
    } else if (last == "" && line ~ /^[^ \t]/) {
        in_list = 0
    }
    if (in_list && match(line, /^ +/)) {
        spaces = 4 * int((RLENGTH + 2) / 3)
        line = sprintf("%" spaces "s", "") substr(line, RLENGTH + 1)
    }
    return line
}

# A "\\|" in a code span of a table stays as it is in Python-Markdown, so such a span becomes HTML.
function without_pipes(line,    result, span)
{
    while (match(line, /`[^`]*`/)) {
        span = substr(line, RSTART + 1, RLENGTH - 2)
        result = result substr(line, 1, RSTART - 1)
        line = substr(line, RSTART + RLENGTH)
        if (index(span, "\\|")) {
            gsub(/&/, "\\&amp;", span)
            gsub(/</, "\\&lt;", span)
            gsub(/\\[|]/, "\\&#124;", span)
            result = result "<code>" span "</code>"
        } else {
            result = result "`" span "`"
        }
    }
    return result line
}

FNR == 1 {
    site_page = site_path(FILENAME)
    page_file = out "/" site_page
    in_list = mermaid = 0
    last = ""
}

{ code = in_code($0) }

code && mermaid && /^ *```/ {
    mermaid = 0
    picture = way(site_page, "diagrams/" name ".svg")
    print "[![" title "](" picture ")](" picture ")" > page_file
    close(diagram_file)
    next
}
code && mermaid {
    if (match($0, /accTitle: */)) title = substr($0, RSTART + RLENGTH)
    print > diagram_file
    next
}
code && /^ *```mermaid/ {
    mermaid = 1
    name = site_page
    sub(/\.md$/, "", name)
    gsub(/\//, "-", name)
    name = name "-" (++drawings[site_page])
    diagram_file = out "/diagrams/" name ".mmd"
    title = "Diagram"
    next
}

{
    line = indented($0)
    if (!code && line ~ /^ *[|]/) line = without_pipes(line)
    print(code ? line : rewrite(line)) > page_file
    last = $0
}

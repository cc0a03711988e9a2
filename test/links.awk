# SPDX-License-Identifier: BSL-1.0
# Reads Markdown pages, after docs/web/markdown.awk, and prints "page:line: target path" for each link into this tree:
# path is where it leads, and is empty if that is outside or if there is no such heading.

in_code($0) { next }

/^#+[ \t]/ {
    anchor = anchor_of($0)
    key = FILENAME "#" anchor
    if (seen[key]++) key = key "-" (seen[key] - 1)
    anchors[key] = 1
}

/<a (id|name)="/ {
    anchor = $0
    sub(/^.*<a (id|name)="/, "", anchor)
    sub(/".*$/, "", anchor)
    anchors[FILENAME "#" anchor] = 1
}

{
    found = links_in($0, target, text)
    # A definition: [name]: target
    if ($0 ~ /^\[[^\]]+\]:[ \t]/) target[++found] = $2
    for (i = 1; i <= found; i++) {
        if (is_elsewhere(target[i])) continue
        total++
        where[total] = FILENAME ":" FNR ":"
        targets[total] = target[i]
        path = anchor = target[i]
        sub(/#.*$/, "", path)
        paths[total] = path == "" ? FILENAME : resolve(FILENAME, path)
        if (sub(/^[^#]*#/, "", anchor)) needed[total] = paths[total] "#" anchor
    }
}

END {
    for (i = 1; i <= total; i++)
        print where[i], targets[i], (i in needed) && !(needed[i] in anchors) ? "" : paths[i]
}

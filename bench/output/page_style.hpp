// SPDX-License-Identifier: BSL-1.0
// The style sheet of the page: responsive, with a dark mode and a print layout.
#pragma once

#include <string_view>

namespace redlock::bench
{

inline constexpr std::string_view page_style = R"(
:root { color-scheme: light dark; --ink: #1f2328; --quiet: #626a73; --line: #dcdfe3; --paper: #fff; --good: #00694c;
    --bad: #b33c00; }
@media (prefers-color-scheme: dark) {
    :root { --ink: #dfe2e6; --quiet: #9aa2ab; --line: #363b42; --paper: #16181c; --good: #4cc9a0; --bad: #ff8f57; }
    /* The pictures are drawn for light paper: turned to dark, with the same hues. */
    figure svg { filter: invert(0.88) hue-rotate(180deg); }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 2.5rem 1.25rem 4rem; max-width: 50rem; background: var(--paper); color: var(--ink);
    font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif;
    -webkit-text-size-adjust: 100%; overflow-wrap: break-word; }
h1 { margin: 0; font-size: 1.75rem; line-height: 1.2; font-weight: 650; letter-spacing: -0.01em; text-wrap: balance; }
h2 { margin: 3rem 0 0.75rem; font-size: 1.2rem; line-height: 1.3; font-weight: 650; text-wrap: balance; }
p { margin: 0.6rem 0; max-width: 42rem; }
.quiet { color: var(--quiet); }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 0.9375rem; line-height: 1.4;
    font-variant-numeric: tabular-nums lining-nums; }
th, td { padding: 0.4rem 0 0.4rem 1rem; vertical-align: baseline; text-align: right; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child { padding-left: 0; text-align: left; }
thead th { color: var(--quiet); font-size: 0.8125rem; font-weight: 500; }
tbody th { font-weight: 400; }
th small, td small { display: block; color: var(--quiet); font-size: 0.8125rem; white-space: nowrap; }
.goal { text-align: left; }
.met { color: var(--good); }
.missed { color: var(--bad); font-weight: 650; }
.samples td { padding-top: 0; font-size: 0.8125rem; color: var(--quiet); text-align: left; }
.joined > * { border-bottom: 0; }
figure { margin: 1.5rem 0 0; overflow-x: auto; }
figure svg { display: block; width: 100%; min-width: 30rem; height: auto; }
figure svg g { font-family: inherit; }
figure svg rect[fill="#ffffff"] { fill: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0.25rem 1.25rem; margin: 0.75rem 0; font-size: 0.9375rem; }
dt { color: var(--quiet); }
dd { margin: 0; }
@media (max-width: 36rem) {
    body { padding: 1.5rem 1rem 3rem; }
    table { font-size: 0.8125rem; }
    th, td { padding-left: 0.6rem; }
    thead th, th small, td small, .samples td { font-size: 0.75rem; }
    dl { font-size: 0.875rem; }
}
@media print {
    :root { --ink: #000; --quiet: #444; --line: #bbb; --paper: #fff; --good: #000; --bad: #000; }
    @page { margin: 18mm; }
    html { font-size: 10pt; }
    body { padding: 0; max-width: none; }
    h2 { break-after: avoid; }
    tr, figure, dl { break-inside: avoid; }
    thead { display: table-header-group; }
    figure svg { min-width: 0; max-width: 150mm; filter: none; }
}
)";

} // namespace redlock::bench

"""The frame of the report: its style, for screens light and dark, wide and narrow, and for paper."""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
:root {{
  --paper: #ffffff; --ink: #1d2127; --faint: #5d6673; --line: #dde1e6; --raised: #f6f7f9; --link: #0b5cad;
  --good: #00664b; --good-back: #dcf3ea; --bad: #a8321a; --bad-back: #fbe6e0;
  --open: #7a5200; --open-back: #fcefcf; --ours: #1f4f8a; --ours-back: #e2edf9;
}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --paper: #15181c; --ink: #e6e8eb; --faint: #a0a8b3; --line: #343a42; --raised: #1e2228; --link: #84bdf5;
    --good: #7fdcb8; --good-back: #123a2d; --bad: #ffab97; --bad-back: #47201a;
    --open: #f3cd7a; --open-back: #3f300e; --ours: #a6cdf7; --ours-back: #17304d;
  }}
}}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{ margin: 0 auto; max-width: 62rem; padding: 2rem 1.25rem 4rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }}
h1 {{ font-size: 1.75rem; line-height: 1.2; margin: 0 0 1rem; text-wrap: balance; }}
h2 {{ font-size: 1.25rem; line-height: 1.3; margin: 2.5rem 0 .75rem; }}
p {{ margin: .75rem 0; max-width: 46rem; }}
a {{ color: var(--link); text-underline-offset: .15em; }}
code {{ font: .9em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }}
section {{ border-top: 1px solid var(--line); margin-top: 2.5rem; scroll-margin-top: 1rem; }}
section h2 {{ margin-top: 1.5rem; }}
nav ul {{ columns: 17rem 2; column-gap: 2rem; padding-left: 1.1rem; margin: 0; }}
.facts, figcaption, summary {{ color: var(--faint); font-size: .875rem; }}
.counts {{ display: flex; flex-wrap: wrap; gap: .5rem 1.25rem; max-width: none; }}
.note {{ border-left: 4px solid var(--open); background: var(--open-back); color: var(--open);
  padding: .5rem .75rem; border-radius: 0 6px 6px 0; overflow-wrap: anywhere; }}
.chip {{ display: inline-block; padding: .05rem .55rem; border-radius: .5rem; font-size: .875rem; font-weight: 600;
  background: var(--raised); color: var(--faint); border: 1px solid currentColor; line-height: 1.45; }}
.good {{ color: var(--good); background: var(--good-back); }}
.bad {{ color: var(--bad); background: var(--bad-back); }}
.open {{ color: var(--open); background: var(--open-back); }}
.ours {{ color: var(--ours); background: var(--ours-back); }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: left; vertical-align: top; padding: .5rem .75rem .5rem 0; border-bottom: 1px solid var(--line); }}
th {{ color: var(--faint); font-size: .8125rem; font-weight: 600; }}
.verdicts td {{ font-size: .9375rem; line-height: 1.4; }}
.verdicts td:first-child {{ width: 36%; }}
.verdicts td:has(.chip) {{ width: 11.5rem; }}
sup {{ font-size: .75em; line-height: 0; }}
.data {{ font-size: .8125rem; width: auto; }}
.data th, .data td {{ padding: .2rem 1rem .2rem 0; white-space: nowrap; }}
.number {{ font-variant-numeric: tabular-nums; }}
.scroll {{ overflow-x: auto; }}
.claims {{ padding-left: 0; list-style: none; max-width: 46rem; }}
.claims li {{ margin: .75rem 0; }}
.claims b {{ font-weight: 600; }}
details {{ margin: .5rem 0; }}
summary {{ cursor: pointer; padding: .25rem 0; }}
figure {{ margin: 1.25rem 0; }}
.card {{ background: #ffffff; border: 1px solid var(--line); border-radius: 8px; padding: .75rem; overflow-x: auto; }}
.card img {{ display: block; width: min(100%, calc(6.8rem * var(--inches))); height: auto; margin: 0 auto; }}
figcaption {{ margin-top: .35rem; }}
@media (max-width: 40rem) {{
  body {{ padding: 1.25rem 1rem 3rem; }}
  h1 {{ font-size: 1.4rem; }}
  .card {{ padding: .5rem; margin: 0 -.5rem; }}
  .card img {{ width: max(100%, calc(4.4rem * var(--inches))); }}
  .wide figcaption::after {{ content: " · move the figure sideways for the rest"; }}
  .verdicts, .verdicts tbody, .verdicts tr, .verdicts td {{ display: block; width: auto !important; }}
  .verdicts tr:first-child {{ display: none; }}
  .verdicts tr {{ border-bottom: 1px solid var(--line); padding: .75rem 0; }}
  .verdicts td {{ border: 0; padding: .15rem 0; }}
}}
@media print {{
  html {{ font-size: 9.5pt; }}
  body {{ max-width: none; padding: 0; }}
  figure, tr, li {{ break-inside: avoid; }}
  h2 {{ break-after: avoid; }}
  nav, details {{ display: none; }}
  a {{ color: inherit; text-decoration: none; }}
}}
</style>
</head>
<body>
{body}
<footer class="facts"><p>Every number on this page was written by the run. Figures are inside the page; links to CSV,
PNG and SVG lead to the folders beside it.</p></footer>
</body>
</html>
"""

"""The style sheet of a page: one column of text, charts a little wider, light and dark."""

PAGE_STYLE = """
:root{--paper:#f7f8fa;--card:#fff;--ink:#1d2433;--soft:#5b6475;--line:#e3e7ee;--accent:#2f6fde;
--code:#f0f2f6;--keyword:#2f5fc4;--string:#0b7a6d;--number:#a8480f}
@media (prefers-color-scheme:dark){:root{--paper:#0d1117;--card:#151a23;--ink:#e8ebf1;
--soft:#9aa4b5;--line:#262e3b;--accent:#6aa1ff;--code:#1b212c;--keyword:#86b0ff;--string:#52cfbd;
--number:#ffab70}}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0;background:var(--paper);color:var(--ink);
font:16px/1.6 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",sans-serif;
-webkit-font-smoothing:antialiased}
main{max-width:1000px;margin:0 auto;padding:56px 24px 72px}
header,h2,p,.lead{max-width:720px}
h1{font-size:34px;line-height:1.15;letter-spacing:-.022em;margin:0 0 12px;font-weight:680}
h2{font-size:21px;line-height:1.3;letter-spacing:-.012em;margin:56px 0 10px;font-weight:640}
.lead{font-size:19px;line-height:1.5;color:var(--soft);margin:0}
p{margin:0 0 14px}
code{font:.88em/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace;
background:var(--code);border-radius:4px;padding:.1em .35em}
.facts{display:flex;flex-wrap:wrap;gap:1px;
margin:36px 0 0;background:var(--line);border:1px solid var(--line);border-radius:12px;
overflow:hidden}
.facts div{flex:1 1 150px;background:var(--card);padding:16px 20px;display:flex;
flex-direction:column}
.facts dd{margin:0;font-size:25px;line-height:1.25;font-weight:640;letter-spacing:-.02em;
font-variant-numeric:tabular-nums;white-space:nowrap}
.facts dt{font-size:13.5px;line-height:1.4;color:var(--soft)}
figure{margin:22px 0 24px}
.chart{border:1px solid var(--line);border-radius:12px;background:var(--card);overflow-x:auto;
padding:6px}
.chart svg{display:block;width:100%;min-width:680px;height:auto}
.zoom{display:flex;align-items:center;gap:8px;margin:0 0 8px;font-size:14px;color:var(--soft)}
.zoom[hidden]{display:none}.zoom input{flex:1;max-width:420px;accent-color:var(--accent)}
.zoom button{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--line);
border-radius:8px;padding:3px 12px;cursor:pointer}.zoom button:hover{border-color:var(--accent)}
figcaption{max-width:720px;margin:10px 2px 0;font-size:14px;line-height:1.5;color:var(--soft)}
.table{overflow-x:auto;border:1px solid var(--line);border-radius:12px;background:var(--card);
margin:18px 0}
table{border-collapse:collapse;width:100%;font-size:14.5px}
th,td{padding:9px 18px;text-align:left;white-space:nowrap}
th{font-weight:600;font-size:13px;color:var(--soft);border-bottom:1px solid var(--line)}
tbody tr+tr td{border-top:1px solid var(--line)}
.right{text-align:right;font-variant-numeric:tabular-nums}
pre{margin:12px 0;padding:16px 20px;overflow-x:auto;border:1px solid var(--line);
border-radius:12px;background:var(--card);font-size:14.5px}
pre code{background:none;padding:0;font-size:13.5px;line-height:1.6}
pre b{font-weight:400}
b.keyword{color:var(--keyword)}b.text{color:var(--string)}b.number{color:var(--number)}
b.comment{color:var(--soft);font-style:italic}
details{margin:10px 0}
summary{cursor:pointer;font-weight:560;padding:4px 0}
summary::marker{color:var(--soft)}
footer{margin-top:64px;padding-top:18px;border-top:1px solid var(--line);font-size:14px;
color:var(--soft)}
@media (max-width:640px){main{padding:32px 16px 48px}h1{font-size:28px}.lead{font-size:17px}
.facts dd{font-size:21px}h2{margin-top:44px}}
@media print{body{background:#fff}.chart,.table,pre,figure{break-inside:avoid}}
"""

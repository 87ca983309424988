package web

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
)

var place = &url.URL{Scheme: "http", Host: "site.example.com", Path: "/dir/page"}

// render is a page of HTML as it is shown.
func render(text string) (*Page, string) {
	p := &Page{}
	return p, p.fromHTML(text, place)
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ html, want string }{
		"headings":        {"<title>T</title><h1>One</h1><p>text<h2>Two</h2>more", "# T\n\n# One\n\ntext\n\n## Two\n\nmore"},
		"title once":      {"<title> The\n Title </title><h1>The Title</h1>x", "# The Title\n\nx"},
		"entities":        {"<p>a &amp; b &lt;c&gt; &quot;d&quot; &eacute; &#x1F600; 1 < 2", "a & b <c> \"d\" é 😀 1 < 2"},
		"not escaped":     {"<p>a*b _c_ [d] `e` #f 1. g", "a*b _c_ [d] `e` #f 1. g"},
		"emphasis":        {"<p><b>bold</b> and <em>so</em>", "**bold** and *so*"},
		"links":           {`<a href="/x">a</a> <a href="y?q=1&amp;r=a+b#f">b</a> <a href="//other.example.com/z">c</a> <a href="https://example.org/(w)">d</a> <a href=mailto:me@example.org>e</a>`, "[a](http://site.example.com/x) [b](http://site.example.com/dir/y?q=1&r=a+b#f) [c](http://other.example.com/z) [d](https://example.org/%28w%29) [e](mailto:me@example.org)"},
		"links to here":   {`<a href="#part">part</a> <a href="page#part">part</a> <a href="">none</a> <a>bare</a>`, "part part none bare"},
		"bad links":       {`<a href="javascript:alert(1)">a</a> <a href=" JavaScript:x">b</a> <a href="data:text/html,x">c</a> <a href="vbscript:x">d</a> <a href="http://[::1">e</a> <a href="file:///etc/passwd">f</a>`, "a b c d e f"},
		"long links":      {`<a href="/` + strings.Repeat("x", maxLink) + `">a</a>`, "a"},
		"same label":      {`<a href="https://example.org/x">https://example.org/x</a> <a href="https://example.org/">example.org</a>`, "<https://example.org/x> <https://example.org/>"},
		"empty link":      {`a<a href="/x"></a>b <a href="/x"> </a>c`, "ab c"},
		"block in a link": {`<a href="/x"><h3>Head</h3><p>text</p></a>`, "[**Head** text](http://site.example.com/x)"},
		"base":            {`<base href="https://cdn.example.com/a/"><a href="b">c</a>`, "[c](https://cdn.example.com/a/b)"},
		"bad base":        {`<base href="javascript:x"><a href="b">c</a>`, "[c](http://site.example.com/dir/b)"},
		"images":          {`<img src="/i.png" alt="a [picture]"><img src="data:image/png;base64,AAAA" alt="inline"><img src="p.gif" width=1 height=1><img alt=none><img src="data:x" data-src="/lazy.png">`, "![a (picture)](http://site.example.com/i.png)![](http://site.example.com/lazy.png)"},
		"lists":           {"<ul><li>a<ul><li>b</ul><li>c</ul><ol start=3><li>d<li>e</ol>", "- a\n\n  - b\n- c\n\n3. d\n4. e"},
		"code":            {"<pre><code class=\"language-go\">if a &lt; b {\n\tc | d\n}</code></pre><p>and <code>x < y|z</code>", "```go\nif a < b {\n\tc | d\n}\n```\n\nand `x < y|z`"},
		"table":           {"<table><tr><th>A<th>B<tr><td>1|2<td><a href=/x>l</a><tr><td colspan=2>both</table>", "| A | B |\n|---|---|\n| 1\\|2 | [l](http://site.example.com/x) |\n| both |  |"},
		"a bar":           {"<p>a | b<table><tr><td><p>one</p><p>x | y</p></table>", "a | b\n\none\n\nx | y"},
		"quotation":       {"<blockquote>a<p>b</blockquote>", "> a\n>\n> b"},
		"dropped":         {`a<script>alert("x")</script><style>p{}</style><template>t</template><noscript>n</noscript><svg><text>s</text></svg><iframe src=x>i</iframe><textarea>ta</textarea><select><option>o</select><object>ob</object><audio>au</audio><!-- comment -->b`, "ab"},
		"formula":         {`<p>so <math><mi>x</mi><annotation encoding="application/x-tex">x^2</annotation></math>.`, "so $x^2$."},
		"unclosed":        {"<div><p>a<b>b<p>c</div>d", "a**b**\n\nc\n\nd"},
		"misnested":       {"<p><b>a<i>b</b>c</i>d", "**a*b***cd"},
		"refresh":         {`<meta http-equiv="refresh" content="0; URL='/next'"><p>wait`, "wait\n\n<http://site.example.com/next>"},
		"private letters": {"<p>a\uf8f1b\uf8f2c\uf8f3d\uf002e", "abcde"},
		"space":           {"<p>a\n\n   b&nbsp;c\t d", "a b\u00a0c d"},
		"break":           {"<p>a<br>b", "a  \nb"},
	} {
		p, got := render(c.html)
		if got != c.want || p.Form != "the whole page as Markdown" {
			t.Errorf("%s:\n%q\nwant\n%q (%s)", name, got, c.want, p.Form)
		}
	}
}

// What an element says itself that it hides is left out, and counted.
func TestHiddenTextIsLeftOut(t *testing.T) {
	t.Parallel()
	gone := []string{
		`<p hidden>EVIL</p>`, `<p hidden="">EVIL</p>`, `<p hidden=hidden>EVIL</p>`, `<div aria-hidden="true">EVIL</div>`, `<dialog>EVIL</dialog>`,
		`<p style="display:none">EVIL</p>`, `<p style="DISPLAY : NONE !important">EVIL</p>`, `<p style="color:red;display:none">EVIL</p>`, `<p style="dis/**/play:none">EVIL</p>`, `<p style="visibility:hidden">EVIL</p>`,
		`<p style="visibility: collapse">EVIL</p>`, `<p style="opacity:0">EVIL</p>`, `<p style="opacity: 0.01">EVIL</p>`, `<p style="font-size:0">EVIL</p>`, `<p style="font-size: 1px">EVIL</p>`, `<p style="font-size:0em">EVIL</p>`,
		`<p style="color:transparent">EVIL</p>`, `<p style="color:#fff;background:#fff">EVIL</p>`, `<p style="color: white; background-color: white">EVIL</p>`, `<p style="position:absolute;left:-9999px">EVIL</p>`,
		`<p style="position:fixed; top:-5000px">EVIL</p>`, `<p style="text-indent:-9999px">EVIL</p>`, `<p style="margin-left:-10000px">EVIL</p>`, `<p style="width:1px;height:1px;overflow:hidden">EVIL</p>`, `<p style="max-height:0;overflow:hidden">EVIL</p>`,
		`<p style="clip:rect(0 0 0 0)">EVIL</p>`, `<p style="clip-path: inset(50%)">EVIL</p>`, `<p style="transform:scale(0)">EVIL</p>`, `<p style="mso-hide:all">EVIL</p>`, `<div style="display:none"><p>E<b>VI</b>L</p></div>`, `<a href=/x style="display:none">EVIL</a>`,
		`<table><tr><td>x<tr style="display:none"><td>EVIL</table>`,
	}
	for _, h := range gone {
		p, got := render("<p>seen</p>" + h)
		if strings.Contains(got, "EVIL") || notes(p) != "1 hidden elements with 4 characters are left out" {
			t.Errorf("%s: %q, %q", h, got, p.Notes)
		}
	}
	for _, h := range []string{
		`<p style="display:block">KEPT</p>`, `<p style="opacity:0.9">KEPT</p>`, `<p style="font-size:0.9em">KEPT</p>`, `<p style="font-size:1em">KEPT</p>`, `<p style="color:#fff;background:#000">KEPT</p>`, `<p style="left:-9999px">KEPT</p>`,
		`<p style="position:absolute;left:-10px">KEPT</p>`, `<p style="height:100%;overflow:hidden">KEPT</p>`, `<p style="color:transparent;-webkit-background-clip:text">KEPT</p>`, `<p aria-hidden="false">KEPT</p>`, `<dialog open>KEPT</dialog>`,
		`<p style="transform:scale(0.5)">KEPT</p>`, `<p style="background:url(display:none)">KEPT</p>`, `<details><summary>s</summary>KEPT</details>`, `<div hidden="until-found">KEPT</div>`, `<body style="display:none"><p>KEPT`, `<html style="opacity:0"><p>KEPT`,
	} {
		if p, got := render("<p>seen</p>" + h); !strings.Contains(got, "KEPT") || len(p.Notes) > 0 {
			t.Errorf("%s: %q, %q", h, got, p.Notes)
		}
	}
	if p, got := render(`<p>seen</p><p hidden> </p><i aria-hidden=true></i><div style="display:none"><img src=/x.png></div>`); got != "seen" || len(p.Notes) > 0 {
		t.Errorf("hidden elements without text: %q, %q", got, p.Notes)
	}
}

// article is a page with a main part of n sentences, within what pages have around it.
func article(n int) string {
	var b strings.Builder
	b.WriteString(`<title>Harbour times</title><header><nav><ul>`)
	for i := range 20 {
		fmt.Fprintf(&b, `<li><a href="/menu/%d">Menu entry %d</a>`, i, i)
	}
	b.WriteString(`</ul></nav></header><main><article><h1>Harbour times</h1>`)
	for i := range n {
		fmt.Fprintf(&b, `<p id="s%d">Ferry number %d leaves the harbour in the early morning, and comes back, as long as the weather holds, late in the evening.</p>`, i, i)
	}
	b.WriteString(`</article></main><aside id="offers"><p>Buy <a href="/offer">our offers</a></p></aside><footer><p>Imprint and more</p></footer>`)
	return b.String()
}

func TestMainContentFirst(t *testing.T) {
	t.Parallel()
	p, got := render(article(20))
	if !strings.HasPrefix(got, "## Harbour times\n\nFerry number 0 leaves") || strings.Count(got, "Ferry number 7 ") != 1 {
		t.Errorf("%q", got)
	}
	// What is not of it follows, so that nothing of a page is out of reach.
	if main, rest, found := strings.Cut(got, "late in the evening.\n\n---\n\n- [Menu entry 0](http"); !found || strings.Contains(main, "Menu entry") || !strings.Contains(rest, "our offers") || !strings.HasSuffix(rest, "Imprint and more") {
		t.Errorf("%q", got)
	}
	var shown, all int
	if _, err := fmt.Sscanf(p.Form, "the main content as Markdown (%d of the page's %d characters, without blanks)", &shown, &all); err != nil || shown >= all || shown < 1_000 {
		t.Errorf("%q: %v", p.Form, err)
	}
	// A page with too little of it comes whole, and so does one whose fragment is elsewhere.
	if p, got := render(article(2)); p.Form != "the whole page as Markdown" || !strings.Contains(got, "Menu entry 3") || !strings.Contains(got, "Ferry number 1") {
		t.Errorf("%s: %q", p.Form, got)
	}
	for fragment, whole := range map[string]bool{"offers": true, "s3": false, "nowhere": false} {
		at := *place
		at.Fragment = fragment
		p := &Page{}
		got := p.fromHTML(article(20), &at)
		if strings.Contains(got, "\n---\n") == whole || strings.HasPrefix(p.Form, "the whole page") != whole {
			t.Errorf("#%s: %s: %q", fragment, p.Form, got)
		}
	}
}

// Pages that were made to take time or memory: the tree has a node for each tag, however they stand in each other, and the text keeps in proportion.
func TestHostilePages(t *testing.T) {
	t.Parallel()
	var formats strings.Builder
	for i := range 450 {
		fmt.Fprintf(&formats, "<b a=%d>", i)
	}
	const size = 30_000
	many := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, c := range map[string]struct {
		html string
		hold string
	}{
		"left open":     {"<p>" + formats.String() + "</p>" + many("<p>x</p>"), "x"},
		"deep":          {many("<div>") + "bottom", "bottom"},
		"deep and out":  {many("<div>") + "bottom" + many("</div>") + "<p>after", "bottom\n\nafter"},
		"deep lists":    {many("<ul><li>x"), "- x"},
		"deep quotes":   {many("<blockquote>x<br>"), "> "},
		"deep tables":   {many("<table><tr><td>x"), "x"},
		"wide table":    {"<table><tr>" + many("<td>x") + strings.Repeat("<tr><td>y", 2_000) + "</table>", "y"},
		"spans":         {"<table>" + many("<tr><td colspan=1000 rowspan=1000>x<td colspan=50 rowspan=50>y"), "x"},
		"a huge span":   {`<table><tr><td colspan="999999999">x<td rowspan="2147483647">y</table>`, "x"},
		"one wide cell": {"<table><tr><td>" + many("wide ") + strings.Repeat("<tr><td>y", 1_000) + "</table>", "wide"},
		"comments":      {many("x<!-- c -->"), "xxx"},
		"no ends":       {many("<a href=x>x<b>y<p>"), "x"},
		"only ends":     {many("</p></b></div>x"), "x"},
		"attributes":    {"<p " + many("a=b ") + ">x", "x"},
		"brackets":      {"<p>" + many("["), "["},
		"start":         {`<ol start="99999999999999999999"><li>x</ol><ol start=-5><li>y</ol>`, "x"},
		"open tag":      {"x<p " + many("a"), "x"},
		"entities":      {many("&lt;&amp;"), "<&"},
	} {
		p, got := render(c.html)
		if !utf8.ValidString(got) || len(got) > 20*len(c.html) || !strings.Contains(got, c.hold) {
			t.Errorf("%s: %d bytes of %d, %s, %.100q", name, len(got), len(c.html), p.Form, got)
		}
	}
	if _, nodes := treeOf("<p>" + formats.String() + "</p>" + many("<p>x</p>")); nodes > 2*size {
		t.Errorf("%d nodes", nodes)
	}
	p, got := render(strings.Repeat("<p>x", maxNodes))
	if p.Form != "the whole page as text" || !strings.Contains(notes(p), "more than 300000 elements") || strings.Count(got, "x") < maxNodes/3 {
		t.Errorf("too many elements: %s, %q, %.50q", p.Form, p.Notes, got)
	}
	if p, got := render("<p>a b<b>c</b> <i>d</i><p>e<div>f</div><script>g</script>" + strings.Repeat("<i>", maxMarked)); p.Form != "the whole page as text" || got != "a bc d\ne\nf" {
		t.Errorf("as text: %s, %q", p.Form, got)
	}
}

// A browser's tree of a page and ours hold the same text in the same order.
func TestTreeOfTagSoup(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"<ul><li>a<li>b</ul>c":                                  "ul(li(a)li(b))c",
		"<p>a<div>b</div>c":                                     "p(a)div(b)c",
		"<p>a<ul><li>b</ul>":                                    "p(a)ul(li(b))",
		"<table><tr><td>a<td>b<tr><td>c</table>d":               "table(tr(td(a)td(b))tr(td(c)))d",
		"<table><tr><td><p>a<table><tr><td>b</table>c</table>d": "table(tr(td(p(a)table(tr(td(b)))c)))d",
		"<dl><dt>a<dd>b<dt>c</dl>":                              "dl(dt(a)dd(b)dt(c))",
		"<h1>a<h2>b":                                            "h1(a)h2(b)",
		"<a href=x>a<a href=y>b":                                "a(a)a(b)",
		"<b>a<p>b</b>c":                                         "b(ap(b))c",
		"a</p>b</br>c<br/>d":                                    "abbr()cbr()d",
		"<td>a</td>b":                                           "td(a)b",
		"<div><table><tr><td></div>a</table></div>b":            "div(table(tr(td(a))))b",
		"<html><head><title>t</title></head><body><p>x</body></html>y": "title(t)p(xy)",
		"<image src=x>":                           "img()",
		"<p/>a":                                   "p(a)",
		"<select><option>a<option>b":              "select(option(a)option(b))",
		"<li>a<div><li>b</div>":                   "li(adiv())li(b)",
		"<button><p>a</button>b":                  "button(p(a))b",
		"<table>a<tr>b<td>c</td>d</tr></table>":   "abdtable(tr(td(c)))",
		"<table><td>a<td>b</table>":               "table(tr(td(a)td(b)))",
		"<table><p>a<tr><td>b</table>":            "p(a)table(tr(td(b)))",
		"x<b>y":                                   "xb(y)",
		"<textarea><b>a</textarea>b":              "textarea(<b>a)b",
		"<table><thead><tr><th>a<tbody><tr><td>b": "table(thead(tr(th(a)))tbody(tr(td(b))))",
	} {
		doc, _ := treeOf(text)
		if got := shape(doc.FirstChild.LastChild); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// shape is what is in a node: texts, and elements with theirs in brackets.
func shape(n *html.Node) string {
	var b strings.Builder
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if child.Type == html.TextNode {
			b.WriteString(child.Data)
			continue
		}
		b.WriteString(child.Data + "(" + shape(child) + ")")
	}
	return b.String()
}

func TestTextKeepsItsMeaning(t *testing.T) {
	t.Parallel()
	for page, want := range map[string]string{
		`<p>10<sup>6</sup> bytes, H<sub>2</sub>O, <del>100</del> 200, <s>old</s>`: "10^6 bytes, H_2O, ~~100~~ 200, ~~old~~",
		`<p>said<sup><a href="/n1">1</a></sup> here<sup></sup>`:                   "said[1](http://site.example.com/n1) here",
		`<details><summary>Sum</summary>text</details>`:                           "Sum\n\ntext",
		`<label>Name</label><button>Go</button><b>on</b>`:                         "Name Go **on**",
		"<p>before \x1b]0;x\a after</p>":                                          "before  after",
		`<p>before &#27;]0;x&#7; after</p>`:                                       "before  after",
		"<p>a \x1b[31mred\x1b[0m b\ac":                                            "a red bc",
	} {
		if _, got := render(page); strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%s: %q, want %q", page, got, want)
		}
	}
}

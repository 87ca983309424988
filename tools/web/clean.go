package web

import (
	"net/url"
	"strings"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"muster/budget"
)

const (
	maxNested = 8      // lists and quotations in each other; deeper ones are blocks
	maxLink   = 2_000  // bytes of the target of a link or an image
	maxSpan   = 50     // rows or columns of one cell
	maxCells  = 20_000 // cells that stand for spans, in a page
	maxGrid   = 50_000 // rows times columns of one table
)

// The library writes "<" and ">" of a text as entities, which a model need not read, and does not know a "|" of a text from one of a table. These
// stand for them until it is done.
const (
	less    = '\uf8f1'
	greater = '\uf8f2'
	pipe    = '\uf8f3'
)

// private takes what has a meaning here, or to the library, out of a page.
var private = strings.NewReplacer(string(less), "", string(greater), "", string(pipe), "", "\uf002", "", "\a", "")

// cleaner takes out of a page's tree what is not for reading, and makes the rest what Markdown can say.
type cleaner struct {
	page   *url.URL // where it is
	base   *url.URL // of its links
	title  string
	onward string // where it sends its readers by itself
	gone   int    // hidden elements that had a text
	lost   int    // characters of those, without blanks
	spans  int    // cells that stand for spans
	spoken int    // characters of terminal sequences and controls that were in texts
}

// around is what a node stands in.
type around struct {
	code, cell, math bool
	nested           int // lists and quotations
}

// clean goes through what is in n.
func (c *cleaner) clean(n *html.Node, at around) {
	for child := n.FirstChild; child != nil; {
		next := child.NextSibling
		if child.Type == html.ElementNode && !c.keep(child) {
			n.RemoveChild(child)
		}
		child = next
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if child.Type == html.TextNode {
			child.Data = mark(c.quiet(merged(child)), at)
		} else {
			c.element(child, at)
		}
	}
}

// merged is the text of n and of the texts that follow it, which it takes out.
func merged(n *html.Node) string {
	next := n.NextSibling
	if next == nil || next.Type != html.TextNode {
		return n.Data
	}
	var b strings.Builder
	b.WriteString(n.Data)
	for next != nil && next.Type == html.TextNode {
		b.WriteString(next.Data)
		n.Parent.RemoveChild(next)
		next = n.NextSibling
	}
	return b.String()
}

// quiet is a text without terminal sequences and controls: the library has a use of its own for some of them, and would leave half a sequence.
func (c *cleaner) quiet(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' && r != '\r' && r != '\f' }) {
		return text
	}
	plain := budget.Plain(text)
	c.spoken += budget.Chars(text) - budget.Chars(plain)
	return plain
}

// mark puts the stand-ins into a text.
func mark(text string, at around) string {
	text = private.Replace(text)
	if !strings.ContainsAny(text, "<>|") {
		return text
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '<' && !at.code:
			return less
		case r == '>' && !at.code:
			return greater
		case r == '|' && at.cell:
			return pipe
		}
		return r
	}, text)
}

// keep says whether an element is for reading, and notes what those that are not say of the page.
func (c *cleaner) keep(n *html.Node) bool {
	switch n.DataAtom {
	case atom.Title:
		if c.title == "" {
			c.title = strings.Join(strings.Fields(private.Replace(textOf(n))), " ")
		}
		return false
	case atom.Base:
		if u, err := c.page.Parse(strings.TrimSpace(attr(n, "href"))); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			c.base = u
		}
		return false
	case atom.Meta:
		if strings.EqualFold(attr(n, "http-equiv"), "refresh") {
			c.refresh(attr(n, "content"))
		}
		return false
	case atom.Script, atom.Style, atom.Template, atom.Noscript, atom.Svg, atom.Iframe, atom.Frame, atom.Noframes, atom.Object, atom.Embed, atom.Applet, atom.Noembed,
		atom.Audio, atom.Video, atom.Canvas, atom.Map, atom.Link, atom.Input, atom.Textarea, atom.Select, atom.Datalist, atom.Progress, atom.Meter, atom.Source,
		atom.Track, atom.Param, atom.Rp:
		return false
	case atom.Img:
		return c.image(n)
	}
	if !hidden(n) {
		return true
	}
	if chars := letters(n); chars > 0 {
		c.gone++
		c.lost += chars
	}
	return false
}

// refresh reads "0; url=…".
func (c *cleaner) refresh(content string) {
	_, after, ok := strings.Cut(content, ";")
	name, target, found := strings.Cut(after, "=")
	if ok && found && strings.EqualFold(strings.TrimSpace(name), "url") && c.onward == "" {
		c.onward, _ = c.resolve(strings.Trim(target, " \t'\""))
	}
}

// image makes the source of an image absolute. One within the page itself, or of one pixel, is none.
func (c *cleaner) image(n *html.Node) bool {
	for _, side := range []string{attr(n, "width"), attr(n, "height")} {
		if side == "0" || side == "1" {
			return false
		}
	}
	if hidden(n) {
		return false
	}
	for _, source := range []string{attr(n, "src"), attr(n, "data-src")} {
		if target, ok := c.resolve(source); ok && strings.HasPrefix(target, "http") {
			n.Attr = []html.Attribute{{Key: "src", Val: target}, {Key: "alt", Val: strings.Join(strings.Fields(private.Replace(attr(n, "alt"))), " ")}}
			return true
		}
	}
	return false
}

// resolve makes a link absolute, where it leads to another place that can be told.
func (c *cleaner) resolve(ref string) (string, bool) {
	ref = strings.TrimSpace(ref)
	u, err := c.base.Parse(ref)
	if err != nil || ref == "" || len(ref) > maxLink {
		return "", false
	}
	switch u.Scheme {
	case "http", "https":
		here := *u
		here.Fragment, here.RawFragment = "", ""
		if u.Fragment != "" && here.String() == c.page.String() || u.Host == "" {
			return "", false
		}
	case "mailto":
	default:
		return "", false
	}
	target := private.Replace(u.String())
	return target, len(target) <= maxLink
}

// element cleans one element and what is in it.
func (c *cleaner) element(n *html.Node, at around) {
	switch n.DataAtom {
	case atom.A:
		target, ok := c.resolve(attr(n, "href"))
		if n.Attr = withID(n); ok {
			n.Attr = append(n.Attr, html.Attribute{Key: "href", Val: target})
		} else {
			rename(n, atom.Span)
		}
	case atom.Pre, atom.Code, atom.Var, atom.Samp, atom.Kbd, atom.Tt:
		at.code = true
	case atom.Ul, atom.Ol, atom.Blockquote:
		if at.nested++; at.nested > maxNested {
			rename(n, atom.Div)
		}
	case atom.Td, atom.Th:
		at.cell = true
		c.span(n)
	case atom.Sup:
		wrap(n, "^", "")
	case atom.Sub:
		wrap(n, "_", "")
	case atom.Del, atom.S, atom.Strike:
		wrap(n, "~~", "~~")
	case atom.Summary:
		rename(n, atom.P)
	case atom.Button, atom.Label, atom.Legend, atom.Option, atom.Dt:
		wrap(n, "", " ") // a browser shows them apart
	case atom.Math:
		if !at.math {
			formula(n)
		}
		at.math = true
	}
	c.clean(n, at)
	if n.DataAtom == atom.Table {
		tame(n)
	}
}

// wrap puts words around what is in n, where there is a text that is not all a link.
func wrap(n *html.Node, before, after string) {
	first := n.FirstChild
	if letters(n) == 0 || before != "" && after == "" && first == n.LastChild && first.DataAtom == atom.A {
		return
	}
	if before != "" {
		n.InsertBefore(&html.Node{Type: html.TextNode, Data: before}, first)
	}
	if after != "" {
		n.AppendChild(&html.Node{Type: html.TextNode, Data: after})
	}
}

func rename(n *html.Node, to atom.Atom) { n.DataAtom, n.Data = to, to.String() }

// withID are the attributes of a link that the search for the main content looks at.
func withID(n *html.Node) []html.Attribute {
	var kept []html.Attribute
	for _, key := range []string{"id", "class"} {
		if has(n, key) {
			kept = append(kept, html.Attribute{Key: key, Val: attr(n, key)})
		}
	}
	return kept
}

// span keeps what a cell spans, as far as that is little.
func (c *cleaner) span(n *html.Node) {
	area := 1
	for i := range n.Attr {
		if key := n.Attr[i].Key; key == "colspan" || key == "rowspan" {
			size, ok := length(n.Attr[i].Val)
			if !ok || size < 1 || size > maxSpan {
				n.Attr[i].Val = "1"
				continue
			}
			area *= int(size)
		}
	}
	if c.spans += area - 1; c.spans > maxCells {
		for i := range n.Attr {
			if key := n.Attr[i].Key; key == "colspan" || key == "rowspan" {
				n.Attr[i].Val = "1"
			}
		}
	}
}

// tame makes blocks of a table that would be mostly filling.
func tame(table *html.Node) {
	rows, columns := 0, 0
	walk(table, func(n *html.Node) bool {
		if n.DataAtom == atom.Tr {
			rows++
			cells := 0
			for child := n.FirstChild; child != nil; child = child.NextSibling {
				if child.DataAtom == atom.Td || child.DataAtom == atom.Th {
					cells++
				}
			}
			columns = max(columns, cells)
		}
		return true
	})
	if rows*columns <= maxGrid {
		return
	}
	walk(table, func(n *html.Node) bool {
		switch n.DataAtom {
		case atom.Table, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Caption:
			rename(n, atom.Div)
		case atom.Td, atom.Th:
			rename(n, atom.P)
		}
		return true
	})
}

// formula puts the source of a formula in the place of its parts.
func formula(math *html.Node) {
	source := ""
	walk(math, func(n *html.Node) bool {
		if n.Data == "annotation" && strings.EqualFold(attr(n, "encoding"), "application/x-tex") {
			source = strings.TrimSpace(textOf(n))
		}
		return source == ""
	})
	if source == "" {
		return
	}
	for math.FirstChild != nil {
		math.RemoveChild(math.FirstChild)
	}
	math.AppendChild(&html.Node{Type: html.TextNode, Data: "$" + source + "$"})
}

// walk visits n and all below it, until visit says no.
func walk(n *html.Node, visit func(*html.Node) bool) bool {
	if !visit(n) {
		return false
	}
	for child := n.FirstChild; child != nil; child = child.NextSibling {
		if !walk(child, visit) {
			return false
		}
	}
	return true
}

// letters counts the characters of all texts below n, without blanks.
func letters(n *html.Node) int {
	count := 0
	if n == nil {
		return 0
	}
	walk(n, func(n *html.Node) bool {
		if n.Type == html.TextNode {
			for _, r := range n.Data {
				if !unicode.IsSpace(r) {
					count++
				}
			}
		}
		return true
	})
	return count
}

// textOf is all texts below n, one after the other.
func textOf(n *html.Node) string {
	var b strings.Builder
	walk(n, func(n *html.Node) bool {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
		return true
	})
	return b.String()
}

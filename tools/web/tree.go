package web

import (
	"slices"
	"strings"
	"sync"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxDepth = 128     // elements in each other; those that are deeper become siblings
	maxNodes = 300_000 // elements and texts; the rest of the page is left out
)

// The tree of a page is built here and not by html.Parse: that one repeats formatting elements that were left open in every block that follows,
// as browsers must, so that 44 kB of text make 340 MB of tree. This one has one node for each tag and text, whatever they are.

// tree builds a document from tags.
type tree struct {
	open   []*html.Node    // from body on: what is not ended yet
	beyond []string        // names of what is open and stands too deep to be so
	text   strings.Builder // of the innermost open element, not in it yet
	nodes  int
}

// treeOf builds the tree of a page. nodes is how many it has, more than maxNodes where it has not all of the page.
func treeOf(text string) (doc *html.Node, nodes int) {
	doc = &html.Node{Type: html.DocumentNode}
	root, body := element("html"), element("body")
	doc.AppendChild(root)
	root.AppendChild(element("head"))
	root.AppendChild(body)
	t := &tree{open: []*html.Node{body}}
	z := html.NewTokenizer(strings.NewReader(text))
	for t.nodes <= maxNodes {
		switch z.Next() {
		case html.ErrorToken: // the end: reading a string does not fail
			t.flush()
			return doc, t.nodes
		case html.TextToken:
			t.text.Write(z.Text())
		case html.StartTagToken, html.SelfClosingTagToken:
			t.start(z.Token())
		case html.EndTagToken:
			t.end(z.Token())
		}
	}
	return doc, t.nodes
}

func element(name string) *html.Node {
	return &html.Node{Type: html.ElementNode, Data: name, DataAtom: atom.Lookup([]byte(name))}
}

// flush makes a node of the text so far, before anything else is put beside it. Texts with nothing but comments between them are one.
func (t *tree) flush() {
	if t.text.Len() > 0 {
		t.add(&html.Node{Type: html.TextNode, Data: t.text.String()})
		t.text.Reset()
	}
}

// add puts a node into the innermost open element, or, where that is a part of a table that holds only others, before the table.
func (t *tree) add(n *html.Node) {
	t.nodes++
	top := t.open[len(t.open)-1]
	if slices.Contains(parts, top.DataAtom) && !slices.Contains(fitting, n.DataAtom) && (n.Type != html.TextNode || strings.TrimSpace(n.Data) != "") {
		if i := t.find(nil, func(n *html.Node) bool { return n.DataAtom == atom.Table }); i > 0 {
			t.open[i].Parent.InsertBefore(n, t.open[i])
			return
		}
	}
	top.AppendChild(n)
}

// Parts of a table that hold only others, and those.
var (
	parts   = []atom.Atom{atom.Table, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Colgroup}
	fitting = []atom.Atom{atom.Caption, atom.Colgroup, atom.Col, atom.Tbody, atom.Thead, atom.Tfoot, atom.Tr, atom.Td, atom.Th}
)

// close ends the open elements from index i on.
func (t *tree) close(i int) {
	t.flush()
	t.open, t.beyond = t.open[:i], nil
}

// keptAttributes are those that somebody here reads.
var keptAttributes = []string{
	"href", "src", "data-src", "alt", "class", "id", "name", "role", "style", "hidden", "aria-hidden", "open", "colspan", "rowspan", "align", "start", "lang", "dir",
	"itemprop", "http-equiv", "content", "encoding", "width", "height",
}

func (t *tree) start(tok html.Token) {
	switch tok.DataAtom {
	case atom.Html, atom.Head, atom.Body: // they are there
		return
	case atom.Image:
		tok.DataAtom, tok.Data = atom.Img, "img"
	}
	t.imply(tok.DataAtom)
	t.flush()
	if cell := tok.DataAtom == atom.Td || tok.DataAtom == atom.Th; cell && len(t.open) < maxDepth && slices.Contains(parts[:4], t.open[len(t.open)-1].DataAtom) {
		row := element("tr")
		t.add(row)
		t.open = append(t.open, row)
	}
	n := &html.Node{Type: html.ElementNode, Data: tok.Data, DataAtom: tok.DataAtom}
	for _, a := range tok.Attr {
		if slices.Contains(keptAttributes, a.Key) && !slices.ContainsFunc(n.Attr, func(b html.Attribute) bool { return a.Key == b.Key }) {
			n.Attr = append(n.Attr, html.Attribute{Key: a.Key, Val: a.Val})
		}
	}
	t.add(n)
	switch {
	case void(n.DataAtom):
	case len(t.open) == maxDepth:
		t.beyond = append(t.beyond, n.Data)
	default:
		t.open = append(t.open, n)
	}
}

func void(name atom.Atom) bool {
	switch name {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param, atom.Source, atom.Track, atom.Wbr:
		return true
	}
	return false
}

// rule says what a start tag ends: the nearest open element of ends, unless one of within is nearer.
type rule struct{ ends, within []atom.Atom }

// cells is what no end of an inner element goes beyond.
var cells = []atom.Atom{atom.Td, atom.Th, atom.Caption, atom.Table, atom.Button, atom.Object, atom.Template}

// implied is the table of end tags that authors leave out.
var implied = sync.OnceValue(func() map[atom.Atom][]rule {
	m := map[atom.Atom][]rule{}
	lists := append([]atom.Atom{atom.Ul, atom.Ol, atom.Menu}, cells...)
	paragraph := rule{[]atom.Atom{atom.P}, cells}
	for _, block := range []atom.Atom{
		atom.Address, atom.Article, atom.Aside, atom.Blockquote, atom.Center, atom.Details, atom.Dialog, atom.Dir, atom.Div, atom.Dl, atom.Fieldset,
		atom.Figcaption, atom.Figure, atom.Footer, atom.Form, atom.Header, atom.Hgroup, atom.Hr, atom.Main, atom.Menu, atom.Nav, atom.Ol, atom.P, atom.Pre,
		atom.Section, atom.Summary, atom.Table, atom.Ul,
	} {
		m[block] = []rule{paragraph}
	}
	headings := []atom.Atom{atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6}
	within := append([]atom.Atom{atom.Div, atom.Section, atom.Article, atom.Li, atom.A}, cells...)
	for _, h := range headings {
		m[h] = []rule{paragraph, {headings, within}}
	}
	m[atom.Li] = []rule{paragraph, {[]atom.Atom{atom.Li}, lists}}
	terms := []atom.Atom{atom.Dt, atom.Dd}
	m[atom.Dt] = []rule{paragraph, {terms, append([]atom.Atom{atom.Dl}, cells...)}}
	m[atom.Dd] = m[atom.Dt]
	m[atom.A] = []rule{{[]atom.Atom{atom.A}, cells}}
	m[atom.Option] = []rule{{[]atom.Atom{atom.Option}, []atom.Atom{atom.Select, atom.Datalist}}}
	table := []atom.Atom{atom.Table, atom.Template}
	m[atom.Td] = []rule{{[]atom.Atom{atom.Td, atom.Th, atom.Caption}, append([]atom.Atom{atom.Tr}, table...)}}
	m[atom.Th] = m[atom.Td]
	m[atom.Tr] = []rule{{[]atom.Atom{atom.Tr, atom.Caption, atom.Colgroup}, table}}
	for _, part := range []atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot} {
		m[part] = []rule{{[]atom.Atom{atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption, atom.Colgroup}, table}, {[]atom.Atom{atom.Tr}, table}}
	}
	return m
})

// imply ends what the start of an element ends.
func (t *tree) imply(name atom.Atom) {
	for _, r := range implied()[name] {
		if i := t.find(r.within, func(n *html.Node) bool { return slices.Contains(r.ends, n.DataAtom) }); i > 0 {
			t.close(i)
		}
	}
	if slices.Contains(fitting, name) { // what was put before the table
		i := t.find([]atom.Atom{atom.Td, atom.Th, atom.Caption, atom.Template}, func(n *html.Node) bool { return slices.Contains(parts, n.DataAtom) })
		if i > 0 && i < len(t.open)-1 {
			t.close(i + 1)
		}
	}
}

// find is the index of the innermost open element that is, 0 where one of within stands in the way, or there is none.
func (t *tree) find(within []atom.Atom, is func(*html.Node) bool) int {
	for i := len(t.open) - 1; i > 0; i-- {
		if is(t.open[i]) {
			return i
		}
		if slices.Contains(within, t.open[i].DataAtom) {
			return 0
		}
	}
	return 0
}

// end ends the innermost open element of a name, and what is open in it. An end without a beginning is none, and that of an element in a cell ends
// nothing around the cell.
func (t *tree) end(tok html.Token) {
	for n := len(t.beyond) - 1; n >= 0 && n >= len(t.beyond)-nearBeyond; n-- {
		if t.beyond[n] == tok.Data {
			t.beyond = t.beyond[:n]
			return
		}
	}
	within := cells
	switch tok.DataAtom {
	case atom.Td, atom.Th, atom.Tr, atom.Tbody, atom.Thead, atom.Tfoot, atom.Caption:
		within = []atom.Atom{atom.Table, atom.Template}
	case atom.Table, atom.Template, atom.Object, atom.Button:
		within = nil
	case atom.Br:
		t.flush()
		t.add(element("br"))
		return
	}
	if i := t.find(within, func(n *html.Node) bool { return n.Data == tok.Data }); i > 0 {
		t.close(i)
	}
}

// nearBeyond is how far back the beginning of a too deep element is looked for.
const nearBeyond = 16

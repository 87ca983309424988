package web

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	readability "codeberg.org/readeck/go-readability/v2"
	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

const (
	maxScored = 60_000  // nodes of a page whose main content is looked for
	maxMarked = 150_000 // nodes of a page that becomes Markdown

	// The main content is what is shown where it has so many characters, and at least one in so many of the page's.
	mainChars = 500
	mainShare = 5
)

// convert makes text of a page of HTML, and says in p which. Few pages are in the making at a time: each takes up to half a second, and some
// hundred megabytes, where somebody meant it to.
func (c *Client) convert(ctx context.Context, p *Page, text string, at *url.URL) (string, error) {
	select {
	case c.making <- struct{}{}:
		defer func() { <-c.making }()
	case <-ctx.Done():
		return "", ended(ctx)
	}
	return p.fromHTML(text, at), nil
}

func (p *Page) fromHTML(text string, at *url.URL) string {
	doc, nodes := treeOf(text)
	page := *at
	page.Fragment, page.RawFragment = "", ""
	c := &cleaner{page: &page, base: &page}
	c.clean(doc, around{})
	if nodes > maxNodes {
		p.note("the page has more than %d elements; what follows them is left out", maxNodes)
	}
	if c.gone > 0 {
		p.note("%d hidden elements with %d characters are left out", c.gone, c.lost)
	}
	body := doc
	p.Form = "the whole page as Markdown"
	if nodes <= maxScored {
		all := letters(doc)
		main := mainContent(doc, &page, at.Fragment)
		if n := letters(main); n >= mainChars && n*mainShare >= all {
			body = main
			p.Form = "the main content as Markdown"
			if n < all {
				p.Form += fmt.Sprintf(" (%d of the page's %d characters, without blanks)", n, all)
			}
		}
	}
	out, ok := "", false
	p.spoken = c.spoken
	if nodes <= maxMarked {
		out, ok = markdownOf(body)
	}
	if ok && body != doc {
		out = p.withRest(out, doc)
	}
	if !ok {
		p.Form = "the whole page as text"
		out = blocks(doc)
	}
	out = unmarked(out)
	if c.title != "" && !strings.HasPrefix(strings.TrimLeft(out, "# "), c.title) {
		out = "# " + c.title + "\n\n" + out
	}
	if c.onward != "" {
		p.note("the page sends its readers on by itself, which is not followed: where to is the last line")
		out += "\n\n<" + target.Replace(c.onward) + ">"
	}
	return out
}

// withRest is the main content and below a line what else is in doc, so that nothing of a page is out of reach.
func (p *Page) withRest(main string, doc *html.Node) string {
	whole, ok := markdownOf(doc)
	if !ok {
		return main
	}
	rest := beside(main, whole)
	if rest == "" {
		return main
	}
	p.Form += ", then the rest of the page"
	return strings.TrimRight(main, "\n") + "\n\n---\n\n" + rest
}

// beside is what of a whole page is not in a part of it, line by line. Marks are not compared: the part may have other levels of headings.
func beside(part, whole string) string {
	key := func(line string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsNumber(r) {
				return r
			}
			return -1
		}, line)
	}
	known := map[string]int{}
	for line := range strings.Lines(part) {
		known[key(line)]++
	}
	var b strings.Builder
	blank := true
	for line := range strings.Lines(whole) {
		k := key(line)
		if k != "" && known[k] > 0 {
			known[k]--
			continue
		}
		if strings.TrimSpace(line) == "" {
			if !blank {
				b.WriteByte('\n')
			}
			blank = true
			continue
		}
		blank = k == ""
		if k != "" {
			b.WriteString(line)
		}
	}
	return strings.TrimSpace(b.String())
}

// mainContent is the part of a page that it is about, nil where that cannot be told, or is not where the fragment of its URL points.
func mainContent(doc *html.Node, page *url.URL, fragment string) (main *html.Node) {
	defer func() {
		if recover() != nil { // a page that the library was not made for
			main = nil
		}
	}()
	parser := readability.NewParser()
	parser.DisableJSONLD = true
	article, err := parser.ParseDocument(doc, page)
	if err != nil || article.Node == nil {
		return nil
	}
	if fragment != "" && holds(doc, fragment) && !holds(article.Node, fragment) {
		return nil
	}
	return article.Node
}

// holds says that an element of this id or name is in n.
func holds(n *html.Node, id string) bool {
	return !walk(n, func(n *html.Node) bool { return attr(n, "id") != id && attr(n, "name") != id })
}

// markdownOf is a tree as Markdown; false where the library breaks over it.
func markdownOf(n *html.Node) (text string, ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	c := converter.NewConverter(
		converter.WithEscapeMode(converter.EscapeModeDisabled), // it looks at the rest of the text for every character that may need one
		converter.WithPlugins(
			base.NewBasePlugin(),
			commonmark.NewCommonmarkPlugin(commonmark.WithListEndComment(false)),
			table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)), // not so many blanks as the widest cell has letters
		),
	)
	c.Register.RendererFor("a", converter.TagTypeInline, link, converter.PriorityEarly)
	c.Register.RendererFor("img", converter.TagTypeInline, image, converter.PriorityEarly)
	out, err := c.ConvertNode(n)
	return string(out), err == nil
}

// target is a URL as it stands in the brackets of a link. The library would write its query anew.
var target = strings.NewReplacer(" ", "%20", "(", "%28", ")", "%29", "<", "%3C", ">", "%3E", "|", "%7C", "\n", "")

// link writes a link on one line.
func link(ctx converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	var b bytes.Buffer
	ctx.RenderChildNodes(ctx, &b, n)
	inner := b.String()
	label := strings.Join(strings.Fields(inner), " ")
	href := target.Replace(attr(n, "href"))
	before, after := "", ""
	if strings.TrimLeft(inner, " \t\n") != inner {
		before = " "
	}
	if strings.TrimRight(inner, " \t\n") != inner {
		after = " "
	}
	switch {
	case label == "":
		_, _ = w.WriteString(before)
		return converter.RenderSuccess
	case label == href || strings.TrimSuffix(label, "/") == strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(href, "https://"), "http://"), "/"):
		label = "<" + href + ">"
	default:
		label = "[" + label + "](" + href + ")"
	}
	_, _ = w.WriteString(before + label + after)
	return converter.RenderSuccess
}

func image(_ converter.Context, w converter.Writer, n *html.Node) converter.RenderStatus {
	alt := strings.NewReplacer("[", "(", "]", ")", "<", string(less), ">", string(greater), "|", string(pipe)).Replace(attr(n, "alt"))
	_, _ = w.WriteString("![" + alt + "](" + target.Replace(attr(n, "src")) + ")")
	return converter.RenderSuccess
}

// unmarked puts back what the stand-ins stand for, and takes blanks off the ends of lines where they mean nothing.
func unmarked(text string) string {
	text = strings.NewReplacer(string(less), "<", string(greater), ">").Replace(text)
	var b strings.Builder
	b.Grow(len(text))
	for line := range strings.Lines(text) {
		line, end := strings.CutSuffix(line, "\n")
		instead := "|"
		if strings.HasPrefix(strings.TrimLeft(line, "> "), "|") {
			instead = `\|`
		}
		if strings.ContainsRune(line, pipe) {
			line = strings.ReplaceAll(line, string(pipe), instead)
		}
		if kept := strings.TrimRight(line, " "); kept == "" || len(kept) == len(line)-1 { // two blanks are a line break
			line = kept
		}
		b.WriteString(line)
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// blocks is the text of a tree with a line for each block.
func blocks(doc *html.Node) string {
	var b strings.Builder
	blank, space := true, false // nothing since the last line end; blanks since the last letter
	walk(doc, func(n *html.Node) bool {
		if n.Type != html.TextNode {
			if !blank && breaks(n.DataAtom) {
				b.WriteByte('\n')
				blank, space = true, false
			}
			return true
		}
		for _, r := range n.Data {
			if unicode.IsSpace(r) {
				space = true
				continue
			}
			if space && !blank {
				b.WriteByte(' ')
			}
			b.WriteRune(r)
			blank, space = false, false
		}
		return true
	})
	return b.String()
}

func breaks(name atom.Atom) bool {
	switch name {
	case atom.A, atom.Abbr, atom.B, atom.Bdi, atom.Bdo, atom.Cite, atom.Code, atom.Data, atom.Del, atom.Dfn, atom.Em, atom.Font, atom.I, atom.Ins, atom.Kbd, atom.Label,
		atom.Mark, atom.Q, atom.S, atom.Samp, atom.Small, atom.Span, atom.Strong, atom.Sub, atom.Sup, atom.Time, atom.U, atom.Var, atom.Wbr:
		return false
	}
	return true
}

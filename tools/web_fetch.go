package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"muster/budget"
	"muster/tools/rules"
	"muster/tools/web"
)

type fetchArgs struct {
	URL      string `json:"url" jsonschema:"http or https"`
	Offset   int64  `json:"offset,omitempty" min:"0" jsonschema:"characters to skip"`
	MaxChars int64  `json:"max_chars,omitempty" default:"fetch_chars" min:"100" max:"fetch_chars" jsonschema:"characters"`
}

func webFetch() Tool {
	return define("web_fetch", Network,
		"Reads a page as Markdown, main content first, in pages by offset. No binary files, no private addresses.",
		runFetch)
}

func runFetch(ctx context.Context, c *Call, a fetchArgs) (Output, error) {
	v, saved := view{args: a}, false
	if a.Offset > 0 {
		v.page, saved = c.set.pages.find(a.URL)
	}
	if saved {
		v.notes = append(v.notes, fmt.Sprintf("as it was fetched %d s ago", int(time.Since(v.page.at).Seconds())))
	} else {
		p, err := c.set.cfg.Web.Fetch(ctx, web.Request{URL: a.URL, Bytes: c.Caps.FetchBytes, Judge: c.follows})
		if err != nil {
			return c.unfetched(a.URL, err)
		}
		p.Text = c.set.clean(p.Text)
		v.page = savedPage{url: a.URL, at: time.Now(), page: p}
		c.set.pages.save(v.page, 2*c.Caps.FetchBytes)
		if a.Offset > 0 {
			v.notes = append(v.notes, "fetched anew, so that it may not go on where an earlier part ended")
		}
	}
	v.notes = append(v.notes, v.page.page.Notes...)
	return v.output(c)
}

// follows judges a redirect of a page as the rules judge a call. There is nobody to ask in the middle of one.
func (c *Call) follows(url string) error {
	args, err := json.Marshal(struct {
		URL string `json:"url"`
	}{url})
	if err != nil {
		return err
	}
	switch d, err := Judge(c.Tree, c.set.cfg.Rules, c.set.cfg.Env, "web_fetch", args); {
	case err != nil:
		return err
	case d.Verdict == rules.Deny:
		return fail(Permission, "it redirects to %s, which is forbidden by the %s", shorten(url, 300), d)
	case d.Verdict == rules.Ask:
		return fail(Permission, "it redirects to %s, which has to be asked about (%s)", shorten(url, 300), d)
	}
	return nil
}

// unfetched is what is said of a page that did not come. What a server said, also where it redirects to, is fenced.
func (c *Call) unfetched(url string, err error) (Output, error) {
	var own *Error
	var e *web.Error
	switch {
	case errors.As(err, &own): // of follows
		return Output{Before: "The page was not followed; take another source.", Untrusted: c.outside(url)}, own
	case !errors.As(err, &e):
		return Output{}, err
	}
	class, next := whatNow(e)
	if !e.Foreign && e.Body == "" {
		return Output{}, fail(class, "%s; %s", e.Text, next)
	}
	return Output{Before: strings.ToUpper(next[:1]) + next[1:] + ".", Text: e.Body, Untrusted: c.outside(url)}, fail(class, "%s", e.Text)
}

// whatNow is the class of a failure on the web, and what can be done next.
func whatNow(e *web.Error) (ErrorClass, string) {
	switch e.Kind {
	case web.Wrong:
		return Input, "correct it"
	case web.Refused:
		return Permission, "take another source, or finish without it"
	case web.Later:
		if secs := int(e.After.Seconds()); secs > 0 {
			return Transient, fmt.Sprintf("try again in %d s, or take another source", secs)
		}
		return Transient, "try again later, or take another source"
	}
	return Permanent, "take another source"
}

// view is a part of a page.
type view struct {
	args  fetchArgs
	page  savedPage
	notes []string
}

// output shows as many characters from offset on as were asked for and fit.
func (v view) output(c *Call) (Output, error) {
	p := v.page.page
	total := int64(budget.Chars(p.Text))
	if total > 0 && v.args.Offset >= total {
		return Output{}, fail(Input, "offset %d is past the end: the page has %s; give an offset of at most %d", v.args.Offset, plural(total, "character"), total-1)
	}
	facts := Facts{Seen: p.Seen, Kept: p.Kept}
	var below []string
	if left := p.Seen - p.Kept; left > 0 {
		cut := budget.Cut{What: "the page", Unit: "bytes", Shown: p.Kept, Total: p.Seen}
		rest := "there is no call for the rest"
		if p.AtLeast {
			rest = "it is longer still, and " + rest
		}
		facts.Cuts = append(facts.Cuts, cut)
		below = append(below, cut.Notice(rest))
	}
	source := c.outside(p.URL)
	if total == 0 {
		below = append(below, v.notes...)
		return Output{Text: joined(append([]string{fmt.Sprintf("the page has no text (%s, %s, %s)", p.Type, p.Form, plural(p.Kept, "byte"))}, below...)...), Facts: facts}, nil
	}
	rest := p.Text[forward(p.Text, v.args.Offset):]
	head := func(shown int64) string { return v.head(shown, total) }
	notice := func(shown int64) string {
		cut := budget.Cut{What: "the page", Unit: "characters", Shown: shown, Total: total}
		return cut.Notice(fmt.Sprintf("the next offset is %d", v.args.Offset+shown))
	}
	own := max(budget.Chars(head(total)), budget.Chars(head(total-1))) + budget.Chars(notice(total)) + budget.Chars(joined(below...))
	room := c.Room - own - 4 // and the line ends between
	part := rest[:forward(rest, max(min(v.args.MaxChars, int64(room)), 1))]
	out := Output{Untrusted: source, Facts: facts, After: joined(below...)}
	if len(part) < len(rest) {
		part = toLine(part)
		shown := int64(budget.Chars(part))
		out.Facts.Cuts = append(out.Facts.Cuts, budget.Cut{What: "the page", Unit: "characters", Shown: shown, Total: total, Next: v.args.Offset + shown})
		out.After = joined(notice(shown), out.After)
	}
	out.Text, out.Same = part, fmt.Sprint(v.args.Offset, part)
	out.Before = head(int64(budget.Chars(part)))
	return out, nil
}

// head says in words of ours what is shown.
func (v view) head(shown, total int64) string {
	p := v.page.page
	text := fmt.Sprintf("%s, %s: ", p.Type, p.Form)
	if shown == total {
		text += plural(total, "character")
	} else {
		text += fmt.Sprintf("%d of %d characters, from offset %d on", shown, total, v.args.Offset)
	}
	if p.Redirects > 0 {
		text += fmt.Sprintf("; redirected %s to the source below", plural(int64(p.Redirects), "time"))
	}
	for _, n := range v.notes {
		text += "\n[" + n + "]"
	}
	return text
}

// forward is the length in bytes of the first n characters of s.
func forward(s string, n int64) int {
	i := 0
	for ; n > 0 && i < len(s); n-- {
		_, size := utf8.DecodeRuneInString(s[i:])
		i += size
	}
	return i
}

// toLine ends a part at the end of a line, where one is near.
func toLine(part string) string {
	if i := strings.LastIndexByte(part, '\n'); i >= len(part)-len(part)/8 {
		return part[:i+1]
	}
	return part
}

const (
	pagesSaved = 4
	pageAge    = 15 * time.Minute
)

// savedPage is a page as it was fetched, for the parts of it that are asked for later.
type savedPage struct {
	url  string // as it was asked for
	at   time.Time
	page *web.Page
}

// pages are the last ones that an agent fetched.
type pages struct {
	mu   sync.Mutex
	list []savedPage // the newest last
}

func (p *pages) find(url string) (savedPage, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.list {
		if one.url == url && time.Since(one.at) < pageAge {
			return one, true
		}
	}
	return savedPage{}, false
}

// save keeps a page and those before it, as many as take at most so many bytes together.
func (p *pages) save(one savedPage, bytes int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := []savedPage{one}
	size := len(one.page.Text)
	for i := len(p.list) - 1; i >= 0 && len(kept) < pagesSaved; i-- {
		if size += len(p.list[i].page.Text); size > bytes {
			break
		}
		if p.list[i].url != one.url {
			kept = append([]savedPage{p.list[i]}, kept...)
		}
	}
	p.list = kept
}

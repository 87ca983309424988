package tools

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster/budget"
	"muster/tools/web"
)

type webSearchArgs struct {
	Query string `json:"query" jsonschema:"what to look for"`
	Count int64  `json:"count,omitempty" default:"search_results" min:"1" max:"search_results" jsonschema:"results"`
}

func webSearch() Tool {
	return define("web_search", Network, "Searches the web: title, URL, snippet. web_fetch reads pages.", runSearch)
}

// queryChars is what all backends take.
const queryChars = 400

func runSearch(ctx context.Context, c *Call, a webSearchArgs) (Output, error) {
	query := strings.Join(strings.Fields(a.Query), " ")
	if query == "" {
		return Output{}, fail(Input, "field `query` is empty")
	}
	if n := budget.Chars(query); n > queryChars {
		return Output{}, fail(Input, "the query has %d characters, at most %d can be searched for; use fewer words", n, queryChars)
	}
	client := c.set.cfg.Web
	hits, left, err := client.Search(ctx, query, int(a.Count), c.Caps.SnippetChars)
	source := "web search by " + client.Searches()
	var e *web.Error
	switch {
	case errors.As(err, &e) && (e.Foreign || e.Body != ""):
		class, next := whatNow(e)
		return Output{Before: strings.ToUpper(next[:1]) + next[1:] + ".", Text: e.Body, Untrusted: c.outside(source)}, fail(class, "%s", e.Text)
	case errors.As(err, &e):
		class, next := whatNow(e)
		return Output{}, fail(class, "%s; %s", e.Text, next)
	case err != nil:
		return Output{}, err
	}
	unusable := ""
	if left > 0 {
		unusable = fmt.Sprintf("[%s left out: without a URL that can be fetched]", plural(int64(left), "result"))
	}
	if len(hits) == 0 {
		return Output{Text: joined("no results; use other or fewer words", unusable)}, nil
	}
	source = c.outside(source)
	var rows []string
	for i, h := range hits[:min(len(hits), int(a.Count))] {
		row := fmt.Sprintf("%d. %s\n   %s", i+1, h.Title, h.URL)
		if h.Snippet != "" {
			row += "\n   " + h.Snippet
		}
		rows = append(rows, row)
	}
	out := results(rows, int64(len(hits)), a.Count < int64(c.Caps.SearchResults), source, c.Room-budget.Chars(unusable)-1)
	out.After = joined(out.After, unusable)
	return out, nil
}

// results shows the rows that fit, and says how many there are beside them.
func results(rows []string, total int64, more bool, source string, room int) Output {
	notice := func(shown int) string {
		cut := budget.Cut{What: "the search", Unit: "results", Shown: int64(shown), Total: total}
		if more {
			return cut.Notice("ask for more with count")
		}
		return cut.Notice("use more exact words")
	}
	room -= budget.Chars(notice(len(rows))) + 2
	rows[0] = shorten(rows[0], room-1) // where a single one has no room it is cut, and ends in an ellipsis
	n := rowsThatFit(rows, room)
	out := Output{Text: strings.Join(rows[:n], "\n"), Untrusted: source}
	if int64(n) < total {
		out.After = notice(n)
		out.Facts.Cuts = []budget.Cut{{What: "the search", Unit: "results", Shown: int64(n), Total: total}}
	}
	return out
}

// unconfigured is the error of a call of web_search where that is not among the tools, nil for any other.
func (s *Set) unconfigured(name string) error {
	if name != "web_search" || s.cfg.Web.Searches() != "" {
		return nil
	}
	return fail(Permanent, "web_search is not offered: this worker has no search configured; use web_fetch with a URL that you know")
}

package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"muster/budget"
	"muster/tools/egress"
)

// Search is where web_search asks, as a host configures it.
type Search struct {
	Backend string // searxng, brave or tavily; "": no search
	URL     string // of the server; "": the public one of brave or tavily
	Key     string // of brave or tavily; sent to the server of URL alone
}

// Backends are the names that Search.Backend may have.
func Backends() []string {
	names := make([]string, 0, len(backends))
	for _, b := range backends {
		names = append(names, b.name)
	}
	return names
}

// backend is one search service: how it is asked, and what it answers.
type backend struct {
	name   string
	url    string // the public server, "" for none
	path   string // below the URL
	keyed  bool
	ask    func(ctx context.Context, at *url.URL, key, query string, count int) (*http.Request, error)
	answer func(body []byte) ([]Hit, error)
}

// backends is the list of them. A new one is a file and a row.
var backends = []backend{searxng, brave, tavily}

// Check says what is wrong with a configuration.
func (s Search) Check() error {
	_, _, err := s.server()
	return err
}

// server is the backend and the URL that its questions go to.
func (s Search) server() (backend, *url.URL, error) {
	i := slices.IndexFunc(backends, func(b backend) bool { return b.name == s.Backend })
	if i < 0 {
		return backend{}, nil, fmt.Errorf("backend %q: there are %s", s.Backend, strings.Join(Backends(), ", "))
	}
	b := backends[i]
	text := s.URL
	if text == "" {
		text = b.url
	}
	u, err := url.Parse(text)
	switch {
	case text == "":
		return b, nil, fmt.Errorf("url: %s needs that of its server", b.name)
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return b, nil, errors.New("url: write one that begins with http:// or https://")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return b, nil, errors.New("url: write it without user, query and fragment")
	case b.keyed && strings.TrimSpace(s.Key) == "":
		return b, nil, fmt.Errorf("key: %s needs one", b.name)
	case strings.ContainsFunc(s.Key, unicode.IsControl):
		return b, nil, errors.New("key: it holds line ends or other control characters: a key is one line")
	case s.Key != "" && u.Scheme == "http" && !slices.Contains([]string{"localhost", "127.0.0.1", "::1"}, u.Hostname()):
		return b, nil, errors.New("url: the key would go over the network without encryption; use https://")
	}
	if _, err := egress.ParseHost(hostPort(u)); err != nil {
		return b, nil, fmt.Errorf("url: %w", err)
	}
	return b, u.JoinPath(b.path), nil
}

// hostPort is the host of a URL with its port.
func hostPort(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return u.Host + map[string]string{"http": ":80", "https": ":443"}[u.Scheme]
}

// errNoResults is of JSON that is no answer of a search.
var errNoResults = errors.New("it has no results field")

// listed is an answer that is a list of results, as that of two of the services is.
type listed struct {
	Results *[]struct {
		Title   string `json:"title"`
		URL     string `json:"url"`
		Content string `json:"content"`
	} `json:"results"`
	Unresponsive []json.RawMessage `json:"unresponsive_engines"` // of searxng
}

func hitsOf(body []byte) ([]Hit, error) {
	var a listed
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, err
	}
	if a.Results == nil {
		return nil, errNoResults
	}
	if n := len(a.Unresponsive); n > 0 && len(*a.Results) == 0 {
		return nil, failure(Later, "the search has no results, and %d of its engines did not answer", n)
	}
	var hits []Hit
	for _, r := range *a.Results {
		hits = append(hits, Hit{r.Title, r.URL, r.Content})
	}
	return hits, nil
}

// engine is a backend that can be asked.
type engine struct {
	backend
	at        *url.URL
	key       string
	idle      time.Duration
	transport *http.Transport
}

// newEngine makes one that reaches its own server, wherever that is, and nothing else.
func newEngine(o Options) (*engine, error) {
	b, at, err := o.Search.server()
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	own, err := egress.ParseHost(hostPort(at))
	if err != nil {
		return nil, fmt.Errorf("search: %w", err)
	}
	d := o.Dialer
	d.Hosts = []egress.Host{own}
	return &engine{backend: b, at: at, key: o.Search.Key, idle: o.Idle, transport: transport(&d, o)}, nil
}

// Hit is one result: plain text, each on one line.
type Hit struct{ Title, URL, Snippet string }

const (
	searchBytes = 2 << 20 // of an answer
	searchTime  = 30 * time.Second
	titleChars  = 200
)

// Searches names the backend of Search, "" where there is none. A nil Client has none.
func (c *Client) Searches() string {
	if c == nil || c.engine == nil {
		return ""
	}
	return c.engine.name
}

// Search asks for count results. It returns all that came, the best first, with at most snippetChars characters of each snippet; left counts those
// that no page can be fetched of. The error is an *Error, or the cause of the end of ctx.
func (c *Client) Search(ctx context.Context, query string, count, snippetChars int) (hits []Hit, left int, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, searchTime, errSlow)
	defer cancel()
	e := c.engine
	if e == nil {
		return nil, 0, failure(Lost, "no search is configured")
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	req, err := e.ask(ctx, e.at, e.key, query, count)
	if err != nil {
		return nil, 0, failure(Wrong, "a query that cannot be sent: %s", oneLine(err.Error()))
	}
	data, err := e.send(req, stop)
	if err != nil {
		return nil, 0, err
	}
	all, err := e.answer(data)
	if err != nil {
		var own *Error
		if errors.As(err, &own) {
			return nil, 0, own
		}
		return nil, 0, failure(Lost, "the search backend %s answers %s", e.name, misread(data))
	}
	for _, h := range all {
		u, err := url.Parse(strings.TrimSpace(h.URL))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || len(h.URL) > maxLink {
			continue
		}
		hits = append(hits, Hit{budget.Preview(plain(h.Title), titleChars), u.String(), budget.Preview(plain(h.Snippet), snippetChars)})
	}
	return hits, len(all) - len(hits), nil
}

// misread says what an answer is that is not the backend's JSON.
func misread(data []byte) string {
	text := bytes.TrimSpace(data)
	switch {
	case len(text) == 0:
		return "nothing"
	case text[0] == '<':
		return "HTML and not JSON: is its URL right?"
	case json.Valid(text):
		return "JSON of another form: is it that service, and its URL right?"
	}
	return "what is no JSON"
}

// plain is a text without the tags and entities that some services put into it.
func plain(s string) string {
	if !strings.ContainsAny(s, "<&") {
		return s
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(s))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.Write(z.Text())
		}
	}
}

// send sends a question and reads the answer. No redirect is followed: the key is for this server.
func (e *engine) send(req *http.Request, stop context.CancelCauseFunc) ([]byte, error) {
	ctx := req.Context()
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Accept-Encoding", "gzip")
	resp, err := e.transport.RoundTrip(req)
	if err != nil {
		return nil, unreached(e.at.Host, err, ended(ctx))
	}
	defer resp.Body.Close()
	idle := time.AfterFunc(e.idle, func() { stop(errIdle) })
	defer idle.Stop()
	a := &answer{client: &Client{opts: Options{Idle: e.idle}}, url: e.at, resp: resp, idle: idle, ctx: ctx}
	b, err := a.read(searchBytes, func([]byte) bool { return true })
	switch {
	case err == nil && resp.StatusCode != http.StatusOK:
		return nil, e.refused(resp, b.data)
	case err != nil && resp.StatusCode != http.StatusOK && ended(ctx) == nil:
		return nil, e.refused(resp, nil)
	case err != nil:
		return nil, err
	case b.broken != nil:
		return nil, b.broken
	case b.more || b.seen > searchBytes:
		return nil, failure(Lost, "the answer of %s is over %d bytes, the most that is read", e.name, searchBytes)
	}
	return b.data, nil
}

// refused is the error of an answer that is not 200.
func (e *engine) refused(resp *http.Response, body []byte) error {
	code := resp.StatusCode
	f := failure(Lost, "the search backend %s answers %s", e.name, statusText(code))
	switch {
	case code == http.StatusTooManyRequests, code >= 500, code == http.StatusRequestTimeout:
		f.Kind = Later
		f.After = wait(first(resp.Header.Get("Retry-After"), resetOf(resp.Header)), time.Now())
	case (code == http.StatusUnauthorized || code == http.StatusPaymentRequired) && e.key == "":
		f.Kind = Refused
		f.Text += ": it wants a key"
	case code == http.StatusUnauthorized, code == http.StatusPaymentRequired:
		f.Kind = Refused
		f.Text += ": its key is wrong, or used up"
	case code == http.StatusForbidden && !e.keyed:
		f.Kind = Refused
		f.Text += ": it must allow the format json (search.formats in its settings.yml)"
	case code == http.StatusForbidden:
		f.Kind = Refused
	case code == http.StatusBadRequest, code == http.StatusUnprocessableEntity:
		f.Kind = Wrong
	case redirects(code):
		f.Text += ", a redirect; put the URL where it really is into the configuration"
	}
	if said := reason(body); said != "" {
		f.Body = said
	}
	return f
}

// resetOf is the shortest of the times, in seconds, after which a limit is lifted.
func resetOf(h http.Header) string {
	now, _, _ := strings.Cut(h.Get("X-RateLimit-Reset"), ",")
	return now
}

func first(values ...string) string {
	for _, v := range values {
		if strings.TrimSpace(v) != "" {
			return v
		}
	}
	return ""
}

const reasonChars = 300

// reason is what the JSON of an error says in words.
func reason(body []byte) string {
	dec := json.NewDecoder(bytes.NewReader(body))
	var words []string
	named := false
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) || err != nil {
			break
		}
		if s, ok := tok.(string); ok {
			if named {
				words = append(words, s)
			}
			named = slices.Contains([]string{"detail", "error", "message", "code"}, s) && !named
			continue
		}
		named = false
	}
	return budget.Preview(strings.Join(words, ": "), reasonChars)
}

package web

import (
	"context"
	"net/http"
	"net/url"
)

// searxng is a server of one's own: https://docs.searxng.org/dev/search_api.html. How many results it sends cannot be asked for.
var searxng = backend{
	name: "searxng", path: "search",
	ask: func(ctx context.Context, at *url.URL, key, query string, _ int) (*http.Request, error) {
		u := *at
		u.RawQuery = url.Values{"q": {query}, "format": {"json"}}.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err == nil && key != "" { // of a proxy before it
			req.Header.Set("Authorization", "Bearer "+key)
		}
		return req, err
	},
	answer: hitsOf,
}

package web

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// brave is https://api-dashboard.search.brave.com/documentation. It leaves "web" out where there is no result.
var brave = backend{
	name: "brave", url: "https://api.search.brave.com", path: "res/v1/web/search", keyed: true,
	ask: func(ctx context.Context, at *url.URL, key, query string, count int) (*http.Request, error) {
		u := *at
		u.RawQuery = url.Values{"q": {query}, "count": {strconv.Itoa(count)}, "text_decorations": {"false"}}.Encode()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
		if err == nil {
			req.Header.Set("X-Subscription-Token", key)
		}
		return req, err
	},
	answer: func(body []byte) ([]Hit, error) {
		var a struct {
			Type string `json:"type"`
			Web  *struct {
				Results []struct {
					Title       string `json:"title"`
					URL         string `json:"url"`
					Description string `json:"description"`
				} `json:"results"`
			} `json:"web"`
		}
		if err := json.Unmarshal(body, &a); err != nil {
			return nil, err
		}
		if a.Web == nil && a.Type != "search" {
			return nil, errNoResults
		}
		var hits []Hit
		if a.Web != nil {
			for _, r := range a.Web.Results {
				hits = append(hits, Hit{r.Title, r.URL, r.Description})
			}
		}
		return hits, nil
	},
}

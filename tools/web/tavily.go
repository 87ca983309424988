package web

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
)

// tavily is https://docs.tavily.com/documentation/api-reference/endpoint/search.
var tavily = backend{
	name: "tavily", url: "https://api.tavily.com", path: "search", keyed: true,
	ask: func(ctx context.Context, at *url.URL, key, query string, count int) (*http.Request, error) {
		body, err := json.Marshal(struct {
			Query      string `json:"query"`
			MaxResults int    `json:"max_results"`
		}{query, count})
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, at.String(), bytes.NewReader(body))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
		}
		return req, err
	},
	answer: hitsOf,
}

package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/board"
	"muster/cmd/internal/app"
	"muster/tools/workspace"
)

const (
	leftNamed  = 3   // names that a line for people gives of each reason
	leftListed = 100 // paths that JSON lists
)

// left is a file that did not come along, and why.
type left struct {
	Path string `json:"path"`
	Why  string `json:"why"`
}

// leftOut is what the private copy of a folder does not hold.
type leftOut struct {
	Left  []left `json:"not_in_copy,omitempty"` // the first of them
	Total int    `json:"not_in_copy_total,omitempty"`
}

func leftOutOf(all []workspace.Left) leftOut {
	o := leftOut{Total: len(all)}
	for _, l := range all[:min(len(all), leftListed)] {
		o.Left = append(o.Left, left{l.Path, l.Why})
	}
	return o
}

// text is a line for a person, empty where all came along.
func (o leftOut) text() string {
	return leftText("not in the private copy that jobs work on", o.Left, o.Total)
}

// unpatched is what the facts of a result say of files that its patch cannot hold; empty where they say nothing.
func unpatched(r board.Result) string {
	var facts struct {
		Left  []left `json:"not_in_patch"`
		Total int    `json:"not_in_patch_total"`
	}
	if len(r.Facts) == 0 || json.Unmarshal(r.Facts, &facts) != nil {
		return "" // facts of another kind
	}
	return leftText("changed, but not in the patch", facts.Left, facts.Total)
}

// leftText counts and names what was left, by reason.
func leftText(what string, list []left, total int) string {
	if total == 0 && len(list) == 0 {
		return ""
	}
	total = max(total, len(list))
	names := map[string][]string{}
	var reasons []string
	for _, l := range list {
		if names[l.Why] == nil {
			reasons = append(reasons, l.Why)
		}
		names[l.Why] = append(names[l.Why], l.Path)
	}
	slices.Sort(reasons)
	var parts []string
	for _, why := range reasons {
		part := fmt.Sprintf("%d %s (", len(names[why]), app.Field(why, 60))
		for i, n := range names[why] {
			if i == leftNamed {
				part += ", …"
				break
			}
			if i > 0 {
				part += ", "
			}
			part += app.Field(n, 60)
		}
		parts = append(parts, part+")")
	}
	if more := total - len(list); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%s: %d: %s", what, total, strings.Join(parts, "; "))
}

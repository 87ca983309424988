package web

import (
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// What a person who looks at a page does not see may be written for agents alone. So elements are left out that say themselves that they are
// hidden: by an attribute, or by a style of their own. Style sheets are not read, so that this is no wall; the fence around the text is.

// hidden says that an element is not shown.
func hidden(n *html.Node) bool {
	for _, a := range n.Attr {
		switch a.Key {
		case "hidden":
			if !strings.EqualFold(a.Val, "until-found") {
				return true
			}
		case "aria-hidden":
			if strings.EqualFold(strings.TrimSpace(a.Val), "true") {
				return true
			}
		case "style":
			if hidingStyle(a.Val) {
				return true
			}
		}
	}
	return n.DataAtom == atom.Dialog && !has(n, "open")
}

func has(n *html.Node, key string) bool {
	for _, a := range n.Attr {
		if a.Key == key {
			return true
		}
	}
	return false
}

func attr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

const maxStyle = 4 << 10 // bytes of a style attribute that are read

var comment = regexp.MustCompile(`/\*[^*]*\*+(?:[^/*][^*]*\*+)*/`)

// hidingStyle says that a style attribute makes what it is on invisible: not laid out, without color, without size, or moved away.
func hidingStyle(style string) bool {
	set := map[string]string{}
	style = comment.ReplaceAllString(strings.ToLower(style[:min(len(style), maxStyle)]), "")
	for declaration := range strings.SplitSeq(style, ";") {
		name, value, _ := strings.Cut(declaration, ":")
		value, _, _ = strings.Cut(value, "!important")
		set[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	for _, one := range []struct{ name, values string }{
		{"display", "none"}, {"visibility", "hidden collapse"}, {"content-visibility", "hidden"}, {"mso-hide", "all"},
	} {
		if v := set[one.name]; v != "" && strings.Contains(" "+one.values+" ", " "+v+" ") {
			return true
		}
	}
	return faint(set) || tiny(set) || away(set)
}

// faint: not to be told from what is behind it.
func faint(set map[string]string) bool {
	if n, ok := length(set["opacity"]); ok && n < 0.1 {
		return true
	}
	color := set["color"]
	switch behind := strings.TrimSpace(set["background-color"] + set["background"]); {
	case color == "":
		return false
	case color == "transparent":
		return !strings.Contains(set["background-clip"]+set["-webkit-background-clip"], "text")
	default:
		return color == behind
	}
}

// tiny: without an extent.
func tiny(set map[string]string) bool {
	if n, ok := length(set["font-size"]); ok && n <= 1 && !strings.HasSuffix(set["font-size"], "em") && !strings.HasSuffix(set["font-size"], "%") || ok && n == 0 {
		return true
	}
	if strings.Contains(set["transform"], "scale(0") && !strings.Contains(set["transform"], "scale(0.") {
		return true
	}
	if clip := strings.ReplaceAll(set["clip"]+set["clip-path"], " ", ""); strings.HasPrefix(clip, "rect(0") || strings.HasPrefix(clip, "rect(1px") ||
		strings.HasPrefix(clip, "inset(50%") || strings.HasPrefix(clip, "inset(100%") || strings.HasPrefix(clip, "circle(0") {
		return true
	}
	if over := set["overflow"] + set["overflow-x"] + set["overflow-y"]; strings.Contains(over, "hidden") || strings.Contains(over, "clip") {
		for _, name := range []string{"width", "height", "max-width", "max-height"} {
			if n, ok := length(set[name]); ok && n <= 1 && !strings.HasSuffix(set[name], "%") {
				return true
			}
		}
	}
	return false
}

const outOfSight = 900 // pixels or the like beyond an edge

// away: beyond the edge of the page.
func away(set map[string]string) bool {
	names := []string{"text-indent", "margin-left", "margin-top"}
	if p := set["position"]; p == "absolute" || p == "fixed" {
		names = append(names, "left", "top", "right", "bottom")
	}
	for _, name := range names {
		if n, ok := length(set[name]); ok && n <= -outOfSight {
			return true
		}
	}
	return false
}

// length is the number that a value of a style begins with, whatever its unit.
func length(value string) (float64, bool) {
	end := strings.IndexFunc(value, func(r rune) bool { return !strings.ContainsRune("+-.0123456789", r) })
	if end < 0 {
		end = len(value)
	}
	n, err := strconv.ParseFloat(value[:end], 64)
	return n, err == nil
}

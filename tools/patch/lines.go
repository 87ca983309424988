package patch

import "strings"

// Lines cuts a text after each \n. A line keeps its end; the last one may have none.
func Lines(text string) []string {
	lines := make([]string, 0, strings.Count(text, "\n")+1)
	for l := range strings.SplitAfterSeq(text, "\n") {
		if l != "" {
			lines = append(lines, l)
		}
	}
	return lines
}

// Body is a line without its end.
func Body(line string) string { return strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r") }

// End is the end of a line: "\r\n", "\n", or "" for a last line without any.
func End(line string) string {
	switch {
	case strings.HasSuffix(line, "\r\n"):
		return "\r\n"
	case strings.HasSuffix(line, "\n"):
		return "\n"
	}
	return ""
}

// WithEnds gives new lines the ends of the old ones that they replace, line by line; what is more than those ends as the last of them does. near is for
// where nothing is replaced.
func WithEnds(lines, old []string, near string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		end := near
		if len(old) > 0 {
			end = End(old[min(i, len(old)-1)])
		}
		out[i] = Body(l) + end
	}
	return out
}

// NearEnd is the line end beside a gap in lines: the one before it, else the one after it, else \n.
func NearEnd(lines []string, gap int) string {
	for i := gap - 1; i >= 0; i-- {
		if e := End(lines[i]); e != "" {
			return e
		}
	}
	if gap < len(lines) && End(lines[gap]) != "" {
		return End(lines[gap])
	}
	return "\n"
}

package web

import (
	"bytes"
	"mime"
	"net/http"
	"path"
	"regexp"
	"strings"

	"golang.org/x/net/html/charset"
)

// form is how the bytes of a page become text.
type form int

const (
	plainText form = iota // as it is
	jsonText
	xmlText
	markdown
	hypertext
	binary // not at all
)

// content is what a body is, as its beginning and its header tell.
type content struct {
	form   form
	media  string // the media type that it has; of text, the one that the header gives where it fits
	header string // Content-Type
	said   string // the media type in it, "" where that is none
}

// mediaType is one that is shown as a server says it: nothing can be told in it.
var mediaType = regexp.MustCompile(`^[a-z]{1,12}/[a-z0-9.+-]{1,40}$`)

// sniffed tells what a body is: binary or text by its first bytes, which text by its header where that can be believed.
func sniffed(head []byte, header string) content {
	found := http.DetectContentType(head)
	media, _, err := mime.ParseMediaType(found)
	if err != nil {
		media = "application/octet-stream"
	}
	said, params, err := mime.ParseMediaType(header)
	if err != nil {
		said, _, _ = strings.Cut(strings.ToLower(header), ";")
		said = strings.TrimSpace(said)
	}
	if !mediaType.MatchString(said) {
		said = ""
	}
	c := content{media: media, header: header, said: said}
	switch {
	case media == "application/octet-stream" && strings.HasPrefix(said, "text/") && mostlyText(head): // a bell, a form feed
		c.media, c.form = textual("text/plain", said)
	case strings.HasPrefix(found, "text/") && bytes.IndexByte(head, 0) < 0, strings.HasPrefix(found, "text/plain; charset=utf-16"), wide(params["charset"]):
		c.media, c.form = textual(media, said)
	default:
		c.form = binary
		if strings.HasPrefix(c.media, "text/") { // by its first half kilobyte
			c.media = "application/octet-stream"
		}
		if c.media == "application/octet-stream" && said != "" && !strings.HasPrefix(said, "text/") {
			c.media = said
		}
	}
	return c
}

// mostlyText says of the beginning of a body that it holds no zero byte and few controls.
func mostlyText(head []byte) bool {
	controls := 0
	for _, c := range head {
		if c < ' ' && !bytes.ContainsRune([]byte("\t\n\r\f\x1b"), rune(c)) || c == 0x7f {
			controls++
		}
	}
	return bytes.IndexByte(head, 0) < 0 && controls*10 <= len(head)
}

// wide says of a charset that its text holds zero bytes.
func wide(label string) bool {
	_, name := charset.Lookup(label)
	return strings.HasPrefix(name, "utf-16")
}

// textual chooses the form of a text.
func textual(found, said string) (string, form) {
	switch {
	case said == "text/html" || said == "application/xhtml+xml":
		return said, hypertext
	case said == "application/json" || said == "text/json" || strings.HasSuffix(said, "+json"):
		return said, jsonText
	case said == "text/xml" || said == "application/xml" || strings.HasSuffix(said, "+xml"):
		return said, xmlText
	case said == "text/markdown" || said == "text/x-markdown":
		return said, markdown
	case strings.HasPrefix(said, "text/"), said == "application/javascript", strings.HasPrefix(said, "application/x-"), said == "application/yaml":
		return said, plainText
	case found == "text/html":
		return found, hypertext
	case found == "text/xml":
		return found, xmlText
	}
	return found, plainText // whatever the header says, it is text
}

// isMarkdown says of a text that its name is that of Markdown.
func isMarkdown(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".md" || ext == ".markdown"
}

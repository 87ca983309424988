// Package web is the web as an agent sees it: pages that become text, and results of a search. It trusts nobody: not the model that names a URL, not
// the server that answers, not the page.
//
// # The life of a fetch
//
//	check     the text of the URL (egress.Dialer.CheckURL): scheme, userinfo, host, port; nothing is looked up for one that is refused
//	welcome   the robots.txt of the host, obeyed unless Options.IgnoreRobots; it is fetched under the same guard, remembered for an hour, and asks
//	          nothing where it cannot be had
//	ask       one GET over HTTP/1.1, no cookie, no proxy of the environment, no kept connection; the address is checked when it is connected to
//	follow    at most five redirects, each checked like the first URL, judged by the caller's rules, and never from https to http
//	read      at most 64 KiB of header; the body within a time for all of it and one without a byte; gzip undone here and nothing else; what is kept
//	          is counted after that, and the rest is read on for a while, to say how much there is
//	sniff     text or not, by the first bytes; what is none is named (type, size) and refused
//	decode    to UTF-8: the charset of the header, of a byte order mark, of the page itself; else a guess, which is said
//	convert   HTML to Markdown; everything else stays as it is
//
// # From HTML to Markdown
//
//	tree      one node for each tag and text, built here (tree.go tells why), at most maxNodes of them, at most maxDepth deep
//	clean     what is no text goes, and so does what is hidden by itself (hidden.go), which is counted; links become absolute; images within the page
//	          go; what could make a table or a quotation much larger than the page is tamed
//	main      the part that the page is about, where there is enough of it (mainChars, mainShare) and the fragment of the URL is not elsewhere, and
//	          below a line what else is on the page; else the whole page. Which of them it is, is in Page.Form
//	markdown  by the library; where it breaks, or the page is too large for it, the text of the page, block by block
//
// # Search
//
// A backend is a value in a file (how it is asked, what it answers) and a row of backends. Its server is named by the host's configuration, may be anywhere,
// and is the only one that it reaches: no redirect is followed, so that the key goes nowhere else.
//
// # Promises
//
//   - No connection goes to an address that egress does not allow, whatever a URL, a redirect or a name server says.
//   - Every fetch ends within Options.Time, or with its context, whose cause is then the error. Nothing runs on after it.
//   - Memory is bounded by Request.Bytes, and for HTML by maxNodes; at most atOnce pages are converted at a time.
//   - Page.Text is valid UTF-8 without control or invisible characters. Whatever was left out of a page is counted in it.
//   - The text of an Error is one line of ASCII. Where a part of it is what a server said, it is marked as foreign.
package web

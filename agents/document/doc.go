// Package document reads the YAML and JSON files that people write for agents: plans, scripts and the heads of profiles and skills.
//
// A document is read strictly. Its size is bounded before it is parsed; a field that nobody knows, a key given twice, a
// value of the wrong type, a second document in the same file and aliases that would blow up when expanded are refused.
// Every refusal names the file and the line, and as many of them as can be found come at once. What was written for other
// programs too (ReadLoose) may have fields that nobody knows; nothing else is let through.
//
// JSON is read by the same parser, YAML being nearly a superset of it; the differences that real files show (tabs
// between tokens, the escapes \/ and surrogate pairs) are taken care of here.
//
// Promise: reading ends quickly and in bounded memory whatever the bytes are.
package document

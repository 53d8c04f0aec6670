// Package session is the data model: items linked by parents, segments that
// hold them, sessions as movable heads, forks, titles and drafts, and how all
// of it lies in the store. It starts nothing and knows no model and no tool.
package session

// Package modelpb is the generated code of the model protocol; its source, with the
// comments, is in plugins/api/proto.
package modelpb

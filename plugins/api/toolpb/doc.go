// Package toolpb is the generated code of the tool and workspace protocol; its source, with the
// comments, is in plugins/api/proto.
package toolpb

// Package storagepb is the generated code of the storage protocol; its source, with the
// comments, is in plugins/api/proto.
package storagepb

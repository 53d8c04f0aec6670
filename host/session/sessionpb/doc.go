// Package sessionpb is the generated code of session.proto: how sessions and
// items lie in the store.
package sessionpb

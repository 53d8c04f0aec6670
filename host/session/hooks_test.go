package session

// What the tests of package session_test see of the inside.
var (
	EncodePayload = encodePayload
	EncodeBundle  = encodeBundle
)

const (
	BundleItems = bundleItems
	BundleBytes = bundleBytes
)

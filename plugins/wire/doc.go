// Package wire turns the contract types of the host into messages of the
// plugin protocol and back, errors included. Both ends use it: plugins/sdk to
// serve a contract, plugins/manager to call one. Nothing else knows both sides.
//
// Slices are shared between a message and the value made of it, not copied:
// whoever is handed one owns both.
package wire

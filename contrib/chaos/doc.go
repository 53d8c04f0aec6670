// Package chaos holds no code but a test: it kills the processes of bough with
// SIGKILL at hundreds of points of a scripted session, goes on each time, and
// compares what the model is told with what is stored.
//
// `make chaos` kills at 200 points; the test suite at a dozen. A run says its
// seed, and -chaos.seed repeats its choices.
package chaos

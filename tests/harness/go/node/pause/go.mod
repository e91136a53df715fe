module tfadmit.dev/tests/node/pause

go 1.26.0

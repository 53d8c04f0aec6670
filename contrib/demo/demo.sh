#!/bin/sh
# The demonstration of the README: a real task of several steps with the
# practice model, in a temporary folder and with a state directory of its own.
set -eu
bough=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
dir=$(mktemp -d "${TMPDIR:-/tmp}/bough-demo.XXXXXX")
BOUGH_STATE_DIR=$dir/state
export BOUGH_STATE_DIR
mkdir "$dir/work"
cd "$dir/work"

say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
[ -t 1 ] || say() { printf '\n%s\n' "$1"; }

prompt='Make a small greeting program, please:
1. write greet.sh: #!/bin/sh\necho "Hello, $1"
2. read greeting.sh
3. edit greet.sh: replace Hello with Good morning
4. read greet.sh
5. run sh greet.sh Ada
6. todo: tell Ada; translate it'

say "The task, for the model 'practice' (no key, no network):"
printf '%s\n' "$prompt" | sed 's/^/  /'
say "bough -p works on it (step 2 fails: there is no such file):"
"$bough" -p --verbose --allowed-tools shell --prompt "$prompt" </dev/null

say "What is in the folder now:"
ls -l
say "The session is kept (bough sessions list):"
"$bough" sessions list
id=$("$bough" sessions list --json | sed -n 's/.*"id": "\(.*\)".*/\1/p' | head -n 1)
say "Its items, each with its parent (bough sessions tree $id):"
"$bough" sessions tree "$id"
say "It can be gone on with (bough -p -c):"
"$bough" -p -c --prompt "run sh greet.sh again" --allowed-tools shell </dev/null
say "Everything is sound (bough sessions verify):"
"$bough" sessions verify

say "All of it is in $dir, and nowhere else. Look around, then remove it:"
cat <<END
  export BOUGH_STATE_DIR=$BOUGH_STATE_DIR
  $bough sessions show $id
  $bough sessions fork $id
  $bough -p --output-format stream-json --prompt "read greet.sh" </dev/null
  $bough sessions export $id -
  rm -r $dir
END

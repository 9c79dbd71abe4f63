# Starts and stops marketd in a test in shell: `. marketd.sh`. MARKETD is the path of the program.

# marketd_start [FLAG...]: sets MARKETD_URL, and MARKETD_SCRIPT to the file of the script.
marketd_start() {
    MARKETD_FOLDER=$(mktemp -d) || return
    MARKETD_SCRIPT=$MARKETD_FOLDER/script
    echo '{}' >"$MARKETD_SCRIPT"
    "${MARKETD:-marketd}" --demo "$MARKETD_SCRIPT" --data :memory: --listen 127.0.0.1:0 \
        --address-file "$MARKETD_FOLDER/addresses" "$@" &
    MARKETD_PID=$!
    until [ -e "$MARKETD_FOLDER/addresses" ]; do
        kill -0 "$MARKETD_PID" 2>/dev/null || { marketd_stop; return 1; }
        sleep 0.01
    done
    MARKETD_URL=$(sed 's/.*"listen":"\([^"]*\)".*/\1/' "$MARKETD_FOLDER/addresses")
    "${MARKETD:-marketd}" healthcheck --wait 30 "$MARKETD_URL" || { marketd_stop; return 1; }
}

# marketd_wait TARGET TEXT: waits until the body has the text.
marketd_wait() {
    for _ in $(seq 3000); do
        curl -fs "$MARKETD_URL$1" | grep -qF "$2" && return
        sleep 0.01
    done
    return 1
}

marketd_stop() {
    kill "$MARKETD_PID" && wait "$MARKETD_PID" || set -- "$?"
    rm -r "$MARKETD_FOLDER"
    return "${1:-0}"
}

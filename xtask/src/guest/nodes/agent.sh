# Takes orders from the host until the machine is off: lines `NUMBER SCRIPT` at descriptor 8, where
# the script's line ends and backslashes are escaped. All run side by side; how each ended goes to
# descriptor 9.
carry_out() {
    sh -c "$2" 8<&- 9>&-
    echo "done $1 $?" >&9
}
take_orders() {
    while read -r number script; do
        carry_out "$number" "$(printf %b "$script")" &
    done <&8
}

"""The table of programs that are only ever shown, by the file names of their executables.

What only some arguments make one of these (ssh, java, qemu, browsers) is in `protected`. Sources:
the programs' own packages and manuals. Names that mean several things err on the side of keeping.
"""

from __future__ import annotations

RUNTIME = "container runtime"
MULTIPLEXER = "terminal multiplexer"
KEYS = "agent of keys"
BUILD = "build daemon"
BUS = "message bus"
SESSION = "session service"
TUNNEL = "tunnel or VPN"
EDITOR = "editor"
DESKTOP = "desktop program"
BROWSER = "browser"

# Of these every `status` tells whether they run, whoever started them.
SHARED = frozenset({RUNTIME, TUNNEL})

# fmt: off
# What a runtime starts for each container or connection: protected like it, and listed by nobody.
PARTS = frozenset({
    "containerd-shim", "containerd-shim-runc-v1", "containerd-shim-runc-v2", "docker-proxy",
    "docker-init", "catatonit", "conmon", "conmonrs", "rootlessport", "slirp4netns", "pasta",
    "pasta.avx2", "passt", "passt.avx2", "vpnkit-bridge", "netavark", "aardvark-dns",
    "fuse-overlayfs", "runc", "crun", "youki", "runsc", "kata-runtime", "buildkit-runc",
    "virtiofsd", "rootlesskit-docker-proxy",
})

_RUNTIMES = (
    # Docker, Docker Desktop and what stands behind them
    "dockerd", "dockerd-rootless.sh", "dockerd-rootless", "rootlesskit",
    "containerd", "buildkitd", "vpnkit", "Docker", "Docker Desktop", "docker-desktop",
    "com.docker.backend", "com.docker.vmnetd", "com.docker.virtualization", "hyperkit",
    # Podman and CRI-O
    "crio", "podman-mac-helper", "gvproxy", "vfkit", "krunkit", "win-sshproxy",
    # virtual machines for containers on a desktop
    "colima", "limactl", "lima-guestagent", "socket_vmnet", "rancher-desktop", "Rancher Desktop",
    "rdctl", "OrbStack", "OrbStack Helper", "orbstack-helper", "orbctl", "orb",
    "multipassd", "finch", "finch-daemon",
    # Apple's containers
    "container-apiserver", "container-runtime-linux", "container-network-vmnet",
    "container-core-images",
    # Kubernetes on the machine itself
    "kubelet", "kube-proxy", "k3s", "k3s-server", "k3s-agent", "rke2", "microk8s", "snapd", "lxd",
    "incusd", "lxcfs",
)
_MULTIPLEXERS = (
    "tmux", "tmux: server", "tmux: client", "screen", "SCREEN", "zellij", "dtach", "abduco", "dvtm",
    "byobu", "tmate", "mosh-server", "ttyd", "shpool", "zmx",
)
_KEYS = (
    "ssh-agent", "ssh-pkcs11-helper", "ssh-sk-helper", "gpg-agent", "dirmngr", "scdaemon",
    "keyboxd", "pinentry", "gnome-keyring-daemon", "gcr-ssh-agent", "secretive", "SecretAgent",
    "kwalletd5", "kwalletd6", "1password", "op-ssh-sign", "bitwarden", "yubikey-agent",
    "pcscd", "rbw-agent", "keepassxc",
)
_BUILDS = (
    "bazel", "watchman", "ccache", "sccache", "distccd", "icecc-scheduler", "iceccd", "buck2d",
    "buckd", "pantsd", "ng-nailgun", "bloop", "gopls-daemon", "VBCSCompiler", "reproxy", "edenfs",
    "idb_companion",
)
_BUSES = (
    "dbus-daemon", "dbus-broker", "dbus-broker-launch", "dbus-launch", "dbus-run-session",
    "at-spi-bus-launcher", "at-spi2-registryd", "ibus-daemon", "fcitx", "fcitx5",
)
_SESSIONS = (
    "launchd", "systemd-logind", "elogind", "pulseaudio", "pipewire", "pipewire-pulse",
    "wireplumber", "Xorg", "Xwayland", "xdg-desktop-portal", "gvfsd", "goa-daemon",
    "tracker-miner-fs-3", "WindowServer", "loginwindow",
)
_TUNNELS = (
    "cloudflared", "ngrok", "tailscaled", "tailscale", "openvpn", "openvpn3", "wg-quick",
    "wireguard", "wireguard-go", "boringtun", "boringtun-cli", "sshuttle", "autossh",
    "zerotier-one", "openconnect", "openfortivpn", "vpnc", "vpnagentd", "vpnui", "pppd", "xl2tpd",
    "charon", "charon-systemd", "frpc", "frps", "chisel", "bore", "zrok", "nebula", "netbird",
    "netclient", "headscale", "wireproxy", "warp-svc", "warp-cli", "mullvad-daemon", "mullvad-vpn",
    "nordvpnd", "expressvpnd", "protonvpn", "protonvpn-app", "GlobalProtect", "PanGPS", "PanGPA",
    "gpclient", "tsh", "teleport", "localtunnel", "twingate", "twingated", "pritunl-client",
    "pritunl-service", "iodine", "stunnel", "stunnel4", "redsocks", "ss-local", "v2ray", "xray",
    "sing-box", "tor", "outline-client",
)
_EDITORS = (
    "code", "code-insiders", "code-server", "code-tunnel", "code-oss", "codium", "vscodium",
    "openvscode-server", "cursor", "Cursor", "windsurf", "Windsurf", "zed", "zed-editor", "zeditor",
    "zed-remote-server", "vi", "vim", "vim.basic", "vim.tiny", "nvim", "gvim", "emacs", "emacs-gtk",
    "emacs-nox", "emacsclient", "nano", "micro", "kak", "helix", "hx", "subl", "sublime_text",
    "plugin_host-3.8", "atom", "pulsar", "lapce", "idea", "idea.sh", "pycharm", "pycharm.sh",
    "webstorm", "goland", "clion", "rider", "rubymine", "phpstorm", "datagrip", "rustrover",
    "dataspell", "fleet", "remote-dev-server.sh", "jetbrains-toolbox", "studio", "studio.sh",
    "Xcode", "kate", "kwrite", "gedit", "gnome-text-editor", "eclipse",
)
_DESKTOP = (
    "gnome-shell", "gnome-session-binary", "mutter", "kwin_wayland", "kwin_x11", "plasmashell",
    "Hyprland", "xfce4-session", "gnome-terminal-server", "kgx", "ptyxis", "konsole",
    "yakuake", "xterm", "urxvt", "alacritty", "kitty", "wezterm-gui",
    "wezterm-mux-server", "ghostty", "xfce4-terminal", "terminator", "tilix",
    "Terminal", "iTerm2", "nautilus", "dolphin", "thunar", "Finder", "slack", "Slack", "discord",
    "Discord", "spotify", "zoom", "teams", "signal-desktop", "telegram-desktop", "thunderbird",
    "evolution", "obsidian", "notion", "postman", "insomnia", "dbeaver", "TablePlus", "evince",
    "okular", "eog", "vlc", "mpv", "xdg-open",
)
BROWSERS = frozenset({
    "chrome", "google-chrome", "google-chrome-stable", "google-chrome-beta", "chromium",
    "chromium-browser", "firefox", "firefox-esr", "firefox-bin", "librewolf", "brave",
    "brave-browser", "msedge", "microsoft-edge", "microsoft-edge-stable", "opera", "vivaldi",
    "vivaldi-bin", "epiphany", "falkon", "konqueror", "qutebrowser", "zen", "zen-bin", "Safari",
    "Google Chrome", "Google Chrome Helper", "Firefox", "Chromium", "Brave Browser",
    "Microsoft Edge", "Arc", "Opera", "Vivaldi",
})
# fmt: on

# Whatever the rest of the name is: versions, variants, and titles that programs give themselves.
PREFIXES: dict[str, str] = {
    "com.apple.Virtualization": RUNTIME,
    "com.docker.": RUNTIME,
    "containerd-shim": RUNTIME,
    "tmux: ": MULTIPLEXER,
    "pinentry-": KEYS,
    "bazel(": BUILD,
    "buck2d[": BUILD,
    "pantsd ": BUILD,
    "emacs-": EDITOR,
    "nvim-": EDITOR,
    "vim.": EDITOR,
    "wezterm-": DESKTOP,
}

CATEGORIES: dict[str, str] = {
    name: category
    for category, names in (
        (RUNTIME, (*_RUNTIMES, *PARTS)),
        (MULTIPLEXER, _MULTIPLEXERS),
        (KEYS, _KEYS),
        (BUILD, _BUILDS),
        (BUS, _BUSES),
        (SESSION, _SESSIONS),
        (TUNNEL, _TUNNELS),
        (EDITOR, _EDITORS),
        (DESKTOP, _DESKTOP),
    )
    for name in names
}

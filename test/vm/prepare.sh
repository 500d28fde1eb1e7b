#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the Postern authors
#
# Gets the kernel for vm.sh: Debian's package is fetched once, not installed, and what a virtual machine with
# RDMA needs of it is kept in the cache, with an initial file system of busybox, the modules and init.sh. Prints
# the folder. The RoCE driver is in the package; that for iWARP, siw, is only in the kernel's source, and built.
# Usage: prepare.sh CACHE rxe|siw
set -eu -o pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

fail() {
	echo "vm.sh: $*" >&2
	exit 126
}
mkdir -p "$1" || fail "cannot make the cache $1"
cache=$(readlink -e "$1")
driver=$2

exec 9>"$cache/lock" # one at a time
flock 9

# Once there is a kernel it stays the one, whatever Debian's newest is.
if [ ! -s "$cache/package" ]; then
	package=$(apt-cache depends linux-image-amd64 2>/dev/null | sed -n 's/.*Depends: //p' | head -n 1)
	[ -n "$package" ] || fail 'apt knows no linux-image-amd64: try apt-get update, or is this not Debian?'
	echo "$package" >"$cache/package"
fi
package=$(cat "$cache/package")
release=${package#linux-image-}
kernel=$cache/$release

work=$(mktemp -d "$cache/work.XXXXXX")
trap 'rm -rf "$work"' EXIT

# fetch PACKAGE: its .deb, as $work/PACKAGE.deb
fetch() {
	mkdir "$work/fetch"
	(cd "$work/fetch" && apt-get -q download "$1") >"$work/log" 2>&1 ||
		fail "cannot fetch $1: $(tail -n 1 "$work/log")"
	mv "$work"/fetch/*.deb "$work/$1.deb"
	rmdir "$work/fetch"
}

# ---- the kernel ----------------------------------------------------------------------------------

# of an image: the kernel itself, which QEMU starts at once; an emulated processor takes long to unpack it
unpack_image() {
	local image=$1 sectors offset length
	# of the boot protocol: setup sectors, and where the packed kernel is behind them
	sectors=$(od -An -tu1 -j497 -N1 "$image")
	offset=$(od -An -tu4 -j584 -N4 "$image")
	length=$(od -An -tu4 -j588 -N4 "$image")
	tail -c +$(((sectors + 1) * 512 + offset + 1)) "$image" | head -c $((length)) |
		xz -dc --single-stream 2>/dev/null || true
}
get_kernel() {
	local k=$work/kernel parts=() folder
	echo "vm.sh: fetching $package" >&2
	fetch "$package"
	mkdir "$k"
	for folder in arch crypto lib net fs drivers/infiniband drivers/virtio drivers/net drivers/char; do
		parts+=("./lib/modules/*/kernel/$folder")
	done
	dpkg-deb --fsys-tarfile "$work/$package.deb" | tar -xf - -C "$k" --wildcards \
		--exclude='*/drivers/infiniband/hw' --exclude='*/drivers/net/ethernet' \
		--exclude='*/drivers/net/wireless' --exclude='*/drivers/net/usb' \
		'./boot/vmlinuz-*' './lib/modules/*/modules.*' "${parts[@]}" ||
		fail "cannot unpack $package"
	find "$k/lib/modules" -name '*.ko.xz' -exec xz -d {} +
	busybox depmod -b "$k" "$release"
	unpack_image "$k/boot/vmlinuz-$release" >"$k/vmlinux"
	# packed in another way than expected
	[ -s "$k/vmlinux" ] || cp "$k/boot/vmlinuz-$release" "$k/vmlinux"
	rm -r "${k:?}/boot"
	mv "$k" "$kernel"
}
[ -d "$kernel" ] || get_kernel

# ---- siw -----------------------------------------------------------------------------------------

build_siw() {
	local version=${release%%-*} tool kbuild common=linux-headers-${release%-amd64}-common root=$work/root headers link
	version=${version%.*}
	echo "vm.sh: building siw for $release" >&2
	for tool in gcc-12 make; do
		command -v $tool >/dev/null || fail "siw has to be built: install $tool"
	done
	kbuild=$(apt-cache depends "linux-headers-$release" | sed -n 's/.*Depends: \(linux-kbuild-.*\)/\1/p')
	mkdir "$root"
	for package in "linux-headers-$release" "$common" "$kbuild"; do
		fetch "$package"
		dpkg-deb -x "$work/$package.deb" "$root"
	done
	fetch "linux-source-$version"
	dpkg-deb --fsys-tarfile "$work/linux-source-$version.deb" |
		tar -xOf - "./usr/src/linux-source-$version.tar.xz" |
		tar -xJf - -C "$work" "linux-source-$version/drivers/infiniband/sw/siw" ||
		fail 'siw: cannot unpack its source'
	# the headers expect to be installed
	headers=$root/usr/src/linux-headers-$release
	sed -i "s|/usr/src/|$root/usr/src/|g; s|/usr/lib/|$root/usr/lib/|g" \
		"$headers/Makefile" "$root/usr/src/$common/Makefile"
	for link in "$headers"/{scripts,tools} "$root/usr/src/$common"/{scripts,tools}; do
		[ ! -L "$link" ] || ln -sfn "$root/usr/lib/$kbuild/$(basename "$link")" "$link"
	done
	make -C "$headers" "M=$work/linux-source-$version/drivers/infiniband/sw/siw" CC=gcc-12 \
		CONFIG_RDMA_SIW=m CONFIG_DEBUG_INFO_BTF_MODULES= modules >"$cache/siw.log" 2>&1 ||
		fail "siw does not build, see $cache/siw.log"
	strip -g "$work/linux-source-$version/drivers/infiniband/sw/siw/siw.ko"
	mkdir -p "$kernel/lib/modules/$release/extra"
	cp "$work/linux-source-$version/drivers/infiniband/sw/siw/siw.ko" \
		"$kernel/lib/modules/$release/extra/"
	busybox depmod -b "$kernel" "$release"
}
if [ "$driver" = siw ] && [ ! -s "$kernel/lib/modules/$release/extra/siw.ko" ]; then
	build_siw
	rm -f "$kernel/initramfs.cpio"
fi

# ---- the initial file system ---------------------------------------------------------------------

# The files of modules and of all they need, what is needed first.
with_needs() {
	awk -v names="$*" '
		{
			file = substr($1, 1, length($1) - 1)
			name = file
			gsub(/.*\/|\.ko$/, "", name)
			gsub("-", "_", name)
			file_of[name] = file
			$1 = ""
			needs[file] = $0
		}
		function load(file, list, n) {
			if (done[file]++)
				return
			for (n = split(needs[file], list, " "); n > 0; n--)
				load(list[n])
			print file
		}
		END {
			count = split(names, name_list, " ")
			for (i = 1; i <= count; i++)
				if (name_list[i] in file_of)
					load(file_of[name_list[i]])
		}' "$kernel/lib/modules/$release/modules.dep"
}
make_initial() {
	local r=$work/initial file
	mkdir -p "$r"/{bin,modules,proc,sys,dev,below,above,new}
	cp "$(command -v busybox)" "$r/bin/busybox"
	ln -s busybox "$r/bin/sh"
	for file in $(with_needs virtio_pci virtio_console 9pnet_virtio 9p overlay crc32_generic \
		crc32c_generic libcrc32c dummy veth bridge sch_netem ib_uverbs rdma_ucm rdma_rxe siw); do
		cp "$kernel/lib/modules/$release/$file" "$r/modules/"
		basename "$file" >>"$r/modules/order"
	done
	cp "$here/init.sh" "$r/init"
	chmod 755 "$r/init"
	(cd "$r" && find . | busybox cpio -o -H newc 2>/dev/null) >"$work/initramfs.cpio"
	mv "$work/initramfs.cpio" "$kernel/initramfs.cpio"
}
if [ "$here/init.sh" -nt "$kernel/initramfs.cpio" ] || [ "$here/prepare.sh" -nt "$kernel/initramfs.cpio" ]; then
	make_initial
fi
echo "$kernel"

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const

/** `1536` → `1.5 KiB` */
export function sizeOf(bytes: number): string {
  const power = Math.min(UNITS.length - 1, bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10))
  const size = bytes / 1_024 ** power
  return `${size < 10 && power > 0 ? size.toFixed(1) : Math.round(size)} ${UNITS[power]}`
}

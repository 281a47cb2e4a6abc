import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

/** Text of the console can be read: WCAG 2.2, success criterion 1.4.3 (4.5 : 1), in light and in dark. */
const css = readFileSync(new URL('tokens.css', import.meta.url), 'utf8')
type Colour = readonly [lightness: number, chroma: number, hue: number]
const tokens = new Map(
  [...css.matchAll(/--color-([a-z-]+): light-dark\(oklch\(([^)]+)\), oklch\(([^)]+)\)\)/g)].map(
    ([, name = '', light = '', dark = '']) => [name, { light: read(light), dark: read(dark) }],
  ),
)

function read(text: string): Colour {
  const [lightness = 0, chroma = 0, hue = 0] = text.split(' ').map(Number)
  return [lightness, chroma, hue]
}

/** The relative luminance of an OKLCH colour (CSS Color 4 §9.2; WCAG 2.2 "relative luminance"), clipped to sRGB. */
function luminance([lightness, chroma, hue]: Colour): number {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)]
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3
  const clip = (value: number) => Math.min(1, Math.max(0, value))
  const red = clip(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s)
  const green = clip(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s)
  const blue = clip(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s)
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue
}

function contrast(text: string, ground: string, scheme: 'light' | 'dark'): number {
  const [one, other] = [text, ground].map((name) => {
    const token = tokens.get(name)
    if (token === undefined) throw new Error(`no token ${name}`)
    return luminance(token[scheme]) + 0.05
  }) as [number, number]
  return Math.max(one, other) / Math.min(one, other)
}

const NEUTRAL = ['canvas', 'surface', 'sunken']
const PAIRS: readonly (readonly [text: string, grounds: readonly string[]])[] = [
  ['ink', [...NEUTRAL, 'accent-soft', 'wait-soft', 'bad-soft']],
  ['muted', [...NEUTRAL, 'accent-soft', 'wait-soft', 'bad-soft']],
  ['accent', [...NEUTRAL, 'accent-soft']],
  ['wait', [...NEUTRAL, 'wait-soft', 'accent-soft']],
  ['bad', [...NEUTRAL, 'bad-soft', 'accent-soft']],
  ['on-accent', ['accent']],
  ['on-bad', ['bad']],
]

test.each(['light', 'dark'] as const)('all text can be read in %s', (scheme) => {
  for (const [text, grounds] of PAIRS)
    for (const ground of grounds)
      expect(contrast(text, ground, scheme), `${text} on ${ground}`).toBeGreaterThanOrEqual(4.5)
})

test('borders of controls can be seen (WCAG 2.2, 1.4.11: 3 : 1)', () => {
  for (const scheme of ['light', 'dark'] as const)
    expect(contrast('edge', 'surface', scheme)).toBeGreaterThanOrEqual(3)
})

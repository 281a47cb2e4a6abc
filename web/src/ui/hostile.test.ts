import { expect, test } from 'vitest'
import { cut, visible } from './hostile.ts'

test('what changes how other text looks is shown by its number', () => {
  expect(visible('a\u202eb')).toBe('a⟨U+202E⟩b')
  expect(visible('\u0000\u001b[31m\u2066x\u2069\u200b\ufeff')).toBe(
    '⟨U+0000⟩⟨U+001B⟩[31m⟨U+2066⟩x⟨U+2069⟩⟨U+200B⟩⟨U+FEFF⟩',
  )
  expect(visible('\u{e0041}')).toBe('⟨U+E0041⟩')
})

test('ordinary text of any script stays as it is, with its lines', () => {
  const text = 'Grüße, 世界 🦟\n\tשלום'
  expect(visible(text)).toBe(text)
})

test('a cut never leaves half a character', () => {
  expect(cut('🦟🦟🦟', 2)).toEqual({ text: '🦟🦟', isCut: true })
  expect(cut('abc', 3)).toEqual({ text: 'abc', isCut: false })
})

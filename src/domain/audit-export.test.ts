import { describe, expect, it, test } from 'vitest'
import { csvCell, csvLine } from './audit-export.ts'

describe('csvCell', () => {
  test.each([
    ['plain', 'plain'],
    ['', ''],
    ['a,b', '"a,b"'],
    ['say "yes"', '"say ""yes"""'],
    ['two\r\nlines', '"two\r\nlines"'],
    // What a spreadsheet would calculate.
    ['=1+1', `"'=1+1"`],
    ['+1', `"'+1"`],
    ['-1', `"'-1"`],
    ['@SUM(A1)', `"'@SUM(A1)"`],
    ['\t=1', `"'\t=1"`],
    ['\r=1', `"'\r=1"`],
    ['\n=1', `"'\n=1"`],
    ['=HYPERLINK("http://x";"y")', `"'=HYPERLINK(""http://x"";""y"")"`],
    [`=cmd|' /C calc'!A0`, `"'=cmd|' /C calc'!A0"`],
    // Only at the beginning does it matter.
    ['a=1', 'a=1'],
    ['2026-11-26', '2026-11-26'],
  ])('%j', (value, cell) => {
    expect(csvCell(value)).toBe(cell)
  })
})

describe('csvLine', () => {
  it('joins lists of texts by spaces, writes objects as JSON, and null as nothing', () => {
    expect(csvLine(['a', null, ['x:r', 'y:w'], { a: 1, b: '"' }, [1, 'x'], [], 10])).toBe(
      'a,,x:r y:w,"{""a"":1,""b"":""\\""""}","[1,""x""]",,10\r\n',
    )
  })

  it('shows a list that begins like a formula as text, too', () => {
    expect(csvLine([['-x', 'y']])).toBe(`"'-x y"\r\n`)
  })
})

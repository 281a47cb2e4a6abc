/** The mark: two pairs of wings and a body. */
export function Wordmark({ isSmall = false }: { readonly isSmall?: boolean }) {
  return (
    <span
      className={`inline-flex items-center gap-2 font-semibold ${isSmall ? 'text-base' : 'text-lg'} text-accent`}
    >
      <svg
        viewBox="0 0 32 32"
        aria-hidden="true"
        className={isSmall ? 'size-5' : 'size-7'}
        fill="currentColor"
      >
        <path d="M15 13C10 3 3 4 3 8c0 4 6 6.500 12 7zM17 13C22 3 29 4 29 8c0 4-6 6.500-12 7z" />
        <path
          opacity=".6"
          d="M15 16c-6 .5-9 3-9 5.500C6 24 11 24 15 17zM17 16c6 .5 9 3 9 5.500C26 24 21 24 17 17z"
        />
        <path
          d="M16 11v11m0 0-4 7m4-7 4 7"
          fill="none"
          stroke="currentColor"
          strokeWidth="1.6"
          strokeLinecap="round"
        />
      </svg>
      Mayfly
    </span>
  )
}

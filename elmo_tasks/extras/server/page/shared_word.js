// The word that is compared unless the user chooses another: one that both sentences have.

const COMMON = new Set(
  (
    "a about after all an and any are as at be because been before but by could did do does for from had has have he " +
    "her him his how i if in into is it its me my no not of on or our out over she should so some than that the their " +
    "them then there these they this to up us very was we were what when where which who will with would you your"
  ).split(" "),
);

/**
 * The places of a word in two lists of tokens: the longest that both have, and a common one such as “the” only if there
 * is no other. Without any, those of two words that begin alike, such as “bank” and “banks”, or 0 and 0.
 */
export function sharedWord(one, other) {
  let best = { likeness: 0, places: [0, 0] };
  one.forEach((word, at) =>
    other.forEach((rival, otherAt) => {
      const found = likeness(word.toLowerCase(), rival.toLowerCase());
      if (found > best.likeness) best = { likeness: found, places: [at, otherAt] };
    }),
  );
  return best.places;
}

function likeness(one, other) {
  if (!/\p{L}/u.test(one)) return 0;
  if (one === other) return COMMON.has(one) ? 1 : 1000 + one.length;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  return same < 4 ? 0 : same;
}

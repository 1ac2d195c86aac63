// Rows of intervals that follow one another, and what each pixel shows of them.

import { boundFrom, grouped, lowerBound } from './steps.js';
import { view } from './view.js';

/** Width in pixels below which things are drawn together. */
const NARROW = 2;

/** Values of a column for some rows of a table. */
function pick(column, items) {
  const out = new Float64Array(items.length);
  for (let i = 0; i < out.length; i++) {
    out[i] = column[items[i]];
  }
  return out;
}

class Lanes {
  /** `rowOf` is each item's row, or -1 if it is hidden. Items are sorted by `began`. */
  constructor(rows, rowOf, began, until, classOf, classes) {
    const { first, items } = grouped(rowOf, rows);
    this.first = first;
    this.items = items;
    this.starts = pick(began, items);
    this.ends = pick(until, items);
    this.classes = classes;
    this.classOf = classOf;
    // Total time of each class up to each item, which colours pixels that many items share.
    this.sums = new Float64Array((items.length + 1) * classes);
    for (let i = 0; i < items.length; i++) {
      for (let c = 0; c < classes; c++) {
        this.sums[(i + 1) * classes + c] = this.sums[i * classes + c];
      }
      this.sums[(i + 1) * classes + (classOf ? classOf[items[i]] : 0)] += this.ends[i] - this.starts[i];
    }
  }

  /** Calls `one(place, x0, x1)` for each wide item, and `few(x0, x1, low, high)` for groups of narrow ones. */
  sweep(row, one, few) {
    const { starts, ends } = this;
    const last = this.first[row + 1];
    let i = lowerBound(ends, view.begin, this.first[row], last);
    while (i < last && starts[i] < view.end) {
      const x0 = view.x(starts[i]);
      const x1 = view.x(ends[i]);
      if (x1 - x0 >= NARROW) {
        one(i, x0, x1);
        i++;
        continue;
      }
      const bin = Math.floor(x0 / NARROW) * NARROW;
      let next = Math.max(i + 1, boundFrom(starts, view.time(bin + NARROW), i, last));
      // A wide item may begin among the narrow ones.
      if (next > i + 1 && ends[next - 1] - starts[next - 1] >= view.nanos(NARROW)) {
        next--;
      }
      few(bin, bin + NARROW, i, next);
      i = next;
    }
  }

  /** Share of a narrow group's time that a class has. */
  share(low, high, c) {
    const { classes, sums } = this;
    return Math.min(1, (sums[high * classes + c] - sums[low * classes + c]) / view.nanos(NARROW));
  }

  /** Returns the place of the item at a time of a row, or of the nearest one within `slack`, or -1. */
  at(row, time, slack) {
    const { starts, ends } = this;
    const last = this.first[row + 1];
    let best = -1;
    let nearest = Infinity;
    const from = lowerBound(ends, time - slack, this.first[row], last);
    for (let i = from; i < last && starts[i] <= time + slack && i < from + 64; i++) {
      const distance = Math.max(starts[i] - time, time - ends[i], 0);
      if (distance < nearest) {
        best = i;
        nearest = distance;
      }
    }
    return best;
  }

  /** Returns the place of an item in a row, or -1. Items must be in the order of their table. */
  placeIn(item, row) {
    const last = this.first[row + 1];
    const place = lowerBound(this.items, item, this.first[row], last);
    return place < last && this.items[place] === item ? place : -1;
  }

  /** Number of a row's items that begin in a span. */
  within(row, begin, end) {
    const last = this.first[row + 1];
    return lowerBound(this.starts, end, this.first[row], last) - lowerBound(this.starts, begin, this.first[row], last);
  }
}

/** Assigns intervals to rows in order of time, without overlaps. */
class Packing {
  constructor(most) {
    this.most = most;
    this.ends = [];
  }

  clear() {
    this.ends.length = 0;
  }

  /** Returns the first of `height` free rows. Beyond the maximum, the last rows are shared. */
  place(began, until, height) {
    const { ends, most } = this;
    let row = 0;
    for (let free = 0, r = 0; free < height; r++) {
      if (r >= ends.length || ends[r] <= began) {
        free++;
      } else {
        free = 0;
        row = r + 1;
      }
    }
    row = Math.max(0, Math.min(row, most - height));
    for (let r = row; r < row + height; r++) {
      ends[r] = ends[r] === undefined ? until : Math.max(ends[r], until);
    }
    return row;
  }

  get height() {
    return this.ends.length;
  }
}

export { Lanes, NARROW, Packing, pick };

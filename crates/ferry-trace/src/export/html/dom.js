// Elements of the page. Text of the trace becomes text nodes only, never markup.

function element(name, ...content) {
  const made = document.createElement(name);
  made.append(...content);
  return made;
}

/** A name of the trace, kept from turning the words around it. */
function named(text) {
  return element('bdi', text);
}

/** A button that goes to something else: `input.js` listens for clicks on it. */
function link(kind, index, text) {
  const button = element('button', named(text));
  button.type = 'button';
  button.className = 'link';
  Object.assign(button.dataset, { kind, index });
  return button;
}

function paragraph(...content) {
  return element('p', ...content.flat());
}

/** Terms and what they are; those without anything are left out. */
function terms(pairs) {
  const list = element('dl');
  for (const [term, value] of pairs.filter(([, value]) => value !== '' && value !== null)) {
    list.append(element('div', element('dt', term), element('dd', value)));
  }
  return list;
}

export { element, link, named, paragraph, terms };
